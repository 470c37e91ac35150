#include "launch/job/culprit.h"

#include <csignal>
#include <vector>

#include "base/text.h"

namespace hvd::launch {
namespace {

struct Blame {
  int32_t rank;
  std::optional<int32_t> witness = {};  // whose note named it
};

const RankEnd& end_of(std::span<const RankEnd> ends, int32_t rank) {
  return ends[static_cast<size_t>(rank)];
}

// Among ranks that nobody had asked to end, a death by signal is the cause of exit codes.
int32_t settle(int32_t seen_first, std::span<const RankEnd> ends) {
  std::vector<RankExit> unasked;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if (ends[rank].status && !ends[rank].was_asked) {
      unasked.push_back({static_cast<int32_t>(rank), *ends[rank].status});
    }
  }
  return settle_first_failure({seen_first, *end_of(ends, seen_first).status}, unasked).rank;
}

// Ranks that came to init waited for others in vain: for one that had ended already, if that is one
// alone.
std::optional<int32_t> left_before_init(std::span<const RankEnd> ends) {
  std::optional<int32_t> found;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    const RankEnd& end = ends[rank];
    if (!end.status || !end.status->is_success() || end.was_asked || end.note) continue;
    if (found) return std::nullopt;
    found = static_cast<int32_t>(rank);
  }
  return found;
}

// Whom a note blames, if it is a rank of the job.
std::optional<int32_t> named_by(const FailureNote& note, std::span<const RankEnd> ends) {
  if (note.rank < 0 && note.code == StatusCode::kTimedOut) return left_before_init(ends);
  if (note.rank < 0 || static_cast<size_t>(note.rank) >= ends.size()) return std::nullopt;
  return note.rank;
}

// From note to note: who failed because of somebody who failed because of ... A circle, as two
// hosts make that lost sight of each other, blames nobody; then `first` stays.
Blame follow_notes(int32_t first, std::span<const RankEnd> ends) {
  Blame blame{.rank = first};
  for (size_t steps = 0; steps < ends.size(); ++steps) {
    const auto& note = end_of(ends, blame.rank).note;
    const auto named = note ? named_by(*note, ends) : std::nullopt;
    if (!named || *named == blame.rank) return blame;
    blame = {.rank = *named, .witness = blame.rank};
  }
  return {.rank = first};
}

bool ended_as_asked(const ExitStatus& status) {
  return status.is_success() || status.signal == SIGTERM || status.signal == SIGKILL ||
         status.code == 128 + SIGTERM;
}

// A rank that shut down was on its way out when the others were told: an exit code of its own, even
// if it was asked to end meanwhile, is how it failed.
bool failed_by_itself(const RankEnd& end, const FailureNote& note) {
  if (!end.status || end.status->is_success()) return false;
  if (!end.was_asked) return true;
  return note.code == StatusCode::kShutDown && !ended_as_asked(*end.status);
}

// "rank 1 (pid 7, host h) has ended" without the name, which the report has already.
std::string reason_of(const FailureNote& note) {
  if (note.code == StatusCode::kShutDown) return "shut down while others waited for it";
  if (note.code == StatusCode::kStalled) {
    return "others waited for it until the stall limit (HOROVOD_STALL_SHUTDOWN_TIME_SECONDS)";
  }
  std::string_view text = note.text;
  text = text.substr(0, text.find('\n'));
  const std::string name = concat("rank ", note.rank, " (");
  const size_t name_end = text.find(") ");
  if (text.starts_with(name) && name_end != std::string_view::npos) {
    text.remove_prefix(name_end + 2);
  }
  return text.empty() ? "was lost" : std::string(text);
}

}  // namespace

bool is_leaver_awaited(int32_t seen_first, std::span<const RankEnd> ends) {
  const Blame blame = follow_notes(seen_first, ends);
  return blame.witness && end_of(ends, *blame.witness).note->code == StatusCode::kShutDown &&
         !end_of(ends, blame.rank).status;
}

Culprit find_culprit(int32_t seen_first, std::span<const RankEnd> ends) {
  const int32_t first = settle(seen_first, ends);
  const Blame blame = follow_notes(first, ends);
  const RankEnd& end = end_of(ends, blame.rank);
  Culprit culprit{.rank = blame.rank, .exit_code = exit_code_of(*end_of(ends, first).status)};
  if (!blame.witness) return culprit;
  const FailureNote& note = *end_of(ends, *blame.witness).note;
  if (failed_by_itself(end, note)) {
    culprit.exit_code = exit_code_of(*end.status);
    return culprit;
  }
  culprit.witness = blame.witness;
  const bool left_early = end.status && end.status->is_success() && !end.was_asked;
  if (!left_early) culprit.reason = reason_of(note);
  return culprit;
}

}  // namespace hvd::launch
