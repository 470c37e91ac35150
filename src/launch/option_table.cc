#include "launch/option_table.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace hvd::launch {
namespace {

// A misspelling is worth a guess up to this many edits; beyond it guesses are noise.
constexpr size_t kGuessEdits = 2;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string guess(std::string_view name) {
  std::string_view best;
  size_t best_distance = kGuessEdits + 1;
  for (const OptionInfo& option : option_table()) {
    for (std::string_view known : option.names) {
      const size_t distance = edit_distance(name, known);
      // "-x" is two edits from every short option: only long names are worth a guess.
      if (distance < best_distance && known.size() > 2 * distance + 1) {
        best = known;
        best_distance = distance;
      }
    }
  }
  return best.empty() ? "" : concat("; did you mean ", best, "?");
}

}  // namespace

std::span<const OptionInfo> option_table() {
  static const std::vector<OptionInfo> table = {
      {OptionId::kNumProc, {"-np", "--num-proc"}, "N", "how many workers to start (required)"},
      {OptionId::kHosts,
       {"-H", "--hosts"},
       "HOST:SLOTS",
       "where they run; this version accepts this machine only"},
      {OptionId::kStartTimeout,
       {"--start-timeout"},
       "SECONDS",
       "how long workers wait for each other (HOROVOD_GLOO_TIMEOUT_SECONDS)"},
      {OptionId::kOutputFilename,
       {"--output-filename"},
       "DIR",
       "also write output to DIR/rank.<rank>/stdout|stderr, without prefix"},
      {OptionId::kPrefixTimestamp,
       {"-prefix-timestamp", "--prefix-output-with-timestamp"},
       "",
       "put the time before the prefix of each line"},
      {OptionId::kVerbose, {"--verbose"}, "", "say what is started, and how each rank ended"},
      {OptionId::kVersion, {"-v", "--version"}, "", "print the version and exit"},
      {OptionId::kHelp, {"-h", "--help"}, "", "print this text and exit"},
  };
  return table;
}

Result<const OptionInfo*> find_option(std::string_view name) {
  std::vector<std::string_view> beginnings;
  const OptionInfo* match = nullptr;
  for (const OptionInfo& option : option_table()) {
    for (std::string_view known : option.names) {
      if (known == name) return &option;
      if (name.starts_with("--") && known.starts_with(name)) {
        beginnings.push_back(known);
        match = &option;
      }
    }
  }
  if (beginnings.size() == 1) return match;
  if (beginnings.size() > 1) {
    return invalid_argument(
        concat("option ", name, " is ambiguous: it could be ", join_text(beginnings, " or ")));
  }
  return invalid_argument(concat("unknown option ", name, guess(name)));
}

}  // namespace hvd::launch
