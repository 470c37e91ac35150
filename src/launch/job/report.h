// report.h - the last words of horovodrun: who failed first, how, and what became of the others.
// Pure; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/os/exit_status.h"
#include "launch/ranks/termination.h"

namespace hvd::launch {

// How a rank ended, seen from the job.
enum class RankFate {
  kFinished,   // exited with 0 before anything went wrong
  kEnded,      // because we asked it to
  kKilled,     // because it did not end when asked
  kFailedToo,  // by itself, besides or after the first failure
  kRemains,    // could not even be killed
  kLost,       // its host could not be reached any more
};

// `step` is how far the termination had gone when the rank's end was seen.
RankFate fate_of(const ExitStatus& status, TerminationStep step);

struct FirstFailure {
  int32_t rank;
  pid_t pid;
  std::string host;
  ExitStatus status;
  Nanoseconds after;                    // since it was started
  std::vector<std::string> last_lines;  // of its output
  // As in culprit.h.
  std::string reason = {};
  std::optional<int32_t> witness = {};
};

std::string failure_report(const FirstFailure& failure, std::span<const RankFate> others);

struct LostHost {
  std::string host;
  std::vector<int32_t> ranks;  // those that had not ended
  std::string why;
  Nanoseconds after;  // since the job was started
};

std::string lost_host_report(const LostHost& lost, std::span<const RankFate> others);

// When a signal to horovodrun ended the job.
std::string signal_report(int signal, Nanoseconds after, std::span<const RankFate> ranks);

// "3.2 s", "45 ms", "2 h 5 min"
std::string describe_span(Nanoseconds span);

}  // namespace hvd::launch
