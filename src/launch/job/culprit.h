// culprit.h - which rank a job that failed is blamed on, and why. The rank whose end was seen first
// is often only the first that noticed: its core has left a note (base/failure_note.h) that names
// the one it lost. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/failure_note.h"
#include "launch/os/exit_status.h"

namespace hvd::launch {

// What is known about a rank when all is over.
struct RankEnd {
  std::optional<ExitStatus> status = {};  // none: it has not ended, or nobody knows how
  bool was_asked = false;                 // to end, before it was on its way out
  std::optional<FailureNote> note = {};   // written before it was asked
};

struct Culprit {
  int32_t rank = 0;
  int exit_code = 0;  // of the job
  // What it did, if its exit status does not tell: it froze, or could not be reached.
  std::string reason = {};
  // Who says so; or, without a reason, who still waited for it. None: its status tells all.
  std::optional<int32_t> witness = {};

  bool operator==(const Culprit&) const = default;
};

// `ends` by rank. `seen_first` is the rank whose failure was noticed first; it has ended.
Culprit find_culprit(int32_t seen_first, std::span<const RankEnd> ends);

// While the job still runs: a rank that shut down before the others failed is on its way out. How
// it ends is worth a moment's wait before everybody is asked to.
bool is_leaver_awaited(int32_t seen_first, std::span<const RankEnd> ends);

}  // namespace hvd::launch
