#include "launch/slurm_hosts.h"

#include "base/parse.h"
#include "base/text.h"
#include "launch/options.h"

namespace hvd::launch {
namespace {

constexpr size_t kMaxNodes = 65536;

Status bad_list(std::string_view text) {
  return invalid_argument(concat("expected a list of nodes such as n[1-3],m, got '", text, "'"));
}

// The end of the item that begins `text`: the first comma outside brackets.
size_t item_end(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

std::string padded(int64_t number, size_t width) {
  std::string digits = concat(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

// The names of one item; `prefix` is what stands before it.
Status expand_item(std::string_view prefix, std::string_view item, std::vector<std::string>& out) {
  const size_t open = item.find('[');
  if (open == std::string_view::npos) {
    out.push_back(concat(prefix, item));
    return out.size() <= kMaxNodes ? Status::ok() : bad_list(item);
  }
  const size_t close = item.find(']', open);
  if (close == std::string_view::npos) return bad_list(item);
  std::string_view ranges = item.substr(open + 1, close - open - 1);
  const std::string_view rest = item.substr(close + 1);
  while (!ranges.empty()) {
    const size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    ranges.remove_prefix(std::min(comma + 1, ranges.size()));
    const size_t dash = range.find('-');
    const std::string_view first_text = range.substr(0, dash);
    const std::string_view last_text =
        dash == std::string_view::npos ? first_text : range.substr(dash + 1);
    const auto first = parse_integer(first_text, {0, INT32_MAX});
    const auto last = parse_integer(last_text, {0, INT32_MAX});
    if (!first || !last || *last < *first || *last - *first > int64_t{kMaxNodes}) {
      return bad_list(item);
    }
    for (int64_t number = *first; number <= *last; ++number) {
      HVD_TRY(expand_item(concat(prefix, item.substr(0, open), padded(number, first_text.size())),
                          rest, out));
    }
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = item_end(text);
    if (end == 0) return bad_list(text);
    HVD_TRY(expand_item("", text.substr(0, end), names));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

Result<std::vector<int32_t>> expand_counts(std::string_view text) {
  std::vector<int32_t> counts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    int64_t repeat = 1;
    if (const size_t open = item.find("(x"); open != std::string_view::npos) {
      if (!item.ends_with(')')) return bad_list(item);
      HVD_TRY_ASSIGN(repeat, parse_integer(item.substr(open + 2, item.size() - open - 3),
                                           {1, int64_t{kMaxNodes}}));
      item = item.substr(0, open);
    }
    HVD_TRY_ASSIGN(const int64_t count, parse_integer(item, {1, kMaxWorkers}));
    if (counts.size() + static_cast<size_t>(repeat) > kMaxNodes) return bad_list(item);
    counts.insert(counts.end(), static_cast<size_t>(repeat), static_cast<int32_t>(count));
  }
  return counts;
}

Result<std::optional<std::vector<HostSlots>>> slurm_hosts(const EnvironmentList& environment) {
  constexpr char kNodes[] = "SLURM_JOB_NODELIST";
  constexpr char kTasks[] = "SLURM_TASKS_PER_NODE";
  const auto list = get_variable(environment, kNodes);
  const auto tasks = get_variable(environment, kTasks);
  if (!list || !tasks || get_variable(environment, "SLURM_STEP_NUM_TASKS")) {
    return std::optional<std::vector<HostSlots>>();
  }
  const auto names = expand_nodelist(*list);
  if (!names) return blame(kNodes, names.status());
  const auto counts = expand_counts(*tasks);
  if (!counts) return blame(kTasks, counts.status());
  if (names->size() != counts->size()) {
    return invalid_argument(concat(kNodes, "=", *list, " names ", names->size(), " nodes, ", kTasks,
                                   "=", *tasks, " has ", counts->size()));
  }
  std::vector<HostSlots> hosts;
  for (size_t i = 0; i < names->size(); ++i) add_host(hosts, {(*names)[i], (*counts)[i]});
  return std::optional(std::move(hosts));
}

}  // namespace hvd::launch
