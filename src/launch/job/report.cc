#include "launch/job/report.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/text.h"

namespace hvd::launch {
namespace {

struct FateText {
  RankFate fate;
  std::string_view one, many;
};
constexpr FateText kFateTexts[] = {
    {RankFate::kFinished, "had finished", "had finished"},
    {RankFate::kFailedToo, "failed too", "failed too"},
    {RankFate::kEnded, "was ended", "were ended"},
    {RankFate::kKilled, "had to be killed", "had to be killed"},
    {RankFate::kRemains, "could not be killed and is still there",
     "could not be killed and are still there"},
    {RankFate::kLost, "was lost with its host", "were lost with their hosts"},
};

// With `who` = "the other ": "the other 2 ranks were ended", or "of the other 3 ranks 1 had
// finished, 2 were ended".
std::string describe_fates(std::span<const RankFate> fates, std::string_view who) {
  std::vector<std::string> parts;
  for (const FateText& text : kFateTexts) {
    const auto count = std::count(fates.begin(), fates.end(), text.fate);
    if (count == 0) continue;
    const std::string_view verb = count == 1 ? text.one : text.many;
    if (static_cast<size_t>(count) == fates.size()) {
      return concat(who, count, count == 1 ? " rank " : " ranks ", verb);
    }
    parts.push_back(concat(count, " ", verb));
  }
  return concat("of ", who, fates.size(), " ranks ", join_text(parts));
}

// "exited with code 3 after 2.1 s", "exited with code 0 after 2.1 s, while rank 0 waited for it",
// "gives no sign of life for 60 s (rank 0 says)"
std::string describe_failure(const FirstFailure& failure) {
  if (!failure.reason.empty()) {
    return failure.witness ? concat(failure.reason, " (rank ", *failure.witness, " says)")
                           : failure.reason;
  }
  std::string text = concat(describe(failure.status), " after ", describe_span(failure.after));
  if (failure.witness) text += concat(", while rank ", *failure.witness, " waited for it");
  return text;
}

}  // namespace

RankFate fate_of(const ExitStatus& status, TerminationStep step) {
  switch (step) {
    case TerminationStep::kRunning:
      return status.is_success() ? RankFate::kFinished : RankFate::kFailedToo;
    case TerminationStep::kTerminating:
      return status.is_success() || status.signal == SIGTERM || status.code == 128 + SIGTERM
                 ? RankFate::kEnded
                 : RankFate::kFailedToo;
    case TerminationStep::kKilling:
      return status.signal == SIGKILL ? RankFate::kKilled : RankFate::kEnded;
    case TerminationStep::kGivenUp:
      break;
  }
  return RankFate::kRemains;
}

std::string describe_span(Nanoseconds span) {
  using std::chrono::duration_cast;
  const int64_t milliseconds = duration_cast<std::chrono::milliseconds>(span).count();
  const int64_t minutes = milliseconds / 60000;
  if (milliseconds < 1000) return concat(milliseconds, " ms");
  if (minutes == 0) return concat(milliseconds / 1000, ".", milliseconds % 1000 / 100, " s");
  if (minutes < 60) return concat(minutes, " min ", milliseconds / 1000 % 60, " s");
  return concat(minutes / 60, " h ", minutes % 60, " min");
}

std::string failure_report(const FirstFailure& failure, std::span<const RankFate> others) {
  std::string text =
      "horovodrun: Horovod detected that one or more processes exited with non-zero status, thus "
      "causing the job to be terminated\n";
  if (!failure.last_lines.empty()) {
    text += concat("horovodrun: last lines of rank ", failure.rank, ":\n");
    for (const std::string& line : failure.last_lines) text += concat("    ", line, "\n");
  }
  text += concat("horovodrun: rank ", failure.rank, " (pid ", failure.pid, ", host ", failure.host,
                 ") failed first: ", describe_failure(failure));
  if (!others.empty()) text += concat("; ", describe_fates(others, "the other "));
  return text + "\n";
}

std::string lost_host_report(const LostHost& lost, std::span<const RankFate> others) {
  std::string text =
      concat("horovodrun: host ", lost.host, " with ", lost.ranks.size() == 1 ? "rank " : "ranks ",
             join_text(lost.ranks), " was lost after ", describe_span(lost.after), ": ", lost.why);
  if (!others.empty()) text += concat("; ", describe_fates(others, "the other "));
  return text + "\n";
}

std::string signal_report(int signal, Nanoseconds after, std::span<const RankFate> ranks) {
  return concat("horovodrun: ended by ", describe_signal(signal), " after ", describe_span(after),
                "; ", describe_fates(ranks, ""), "\n");
}

}  // namespace hvd::launch
