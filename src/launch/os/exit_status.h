// exit_status.h - how a worker ended, what that means for the exit code, and which failure came
// first. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hvd::launch {

// The exit codes of horovodrun that are not a worker's own.
enum class LauncherExit : int {
  kSuccess = 0,
  kUsage = 2,
  kLauncherFailed = 125,
  kNotExecutable = 126,
  kNotFound = 127,
};

struct ExitStatus {
  int code = 0;
  int signal = 0;            // not 0: killed by it
  bool core_dumped = false;  // only with a signal
  int exec_error = 0;        // not 0: the program never ran; an errno

  static ExitStatus from_wait_status(int wait_status);
  bool is_success() const { return code == 0 && signal == 0; }
  bool operator==(const ExitStatus&) const = default;
};

// What horovodrun exits with when this was the first failure: the code itself, or 128 + signal.
int exit_code_of(const ExitStatus& status);

// What the kernel says about the program itself when it could not be executed: 127 if it, or the
// interpreter that its first line names, is missing; otherwise 126.
int exit_code_of_exec_error(int exec_error);

// "exited with code 3", "killed by signal 9 (Killed)", "could not be started: Exec format error"
std::string describe(const ExitStatus& status);
std::string describe_signal(int signal);

struct RankExit {
  int32_t rank;
  ExitStatus status;
};

// Which of the exits found in one look is the first failure; none if all were successes. A death by
// signal comes before an exit code: ranks that lose a peer exit with a code, and may be gone before
// the kernel has finished with the peer. Then the rank whose end the kernel `announced` first, then
// the lowest.
std::optional<int32_t> first_failure(std::span<const RankExit> exits,
                                     std::optional<int32_t> announced);

// A process is slow to die when it has much memory to give back, so its peers may notice and exit
// first. `already_dying` are the ends of the ranks that were on their way out when the first
// failure was seen, before anybody was asked to end: a death by signal among them is the cause.
RankExit settle_first_failure(const RankExit& seen_first, std::span<const RankExit> already_dying);

}  // namespace hvd::launch
