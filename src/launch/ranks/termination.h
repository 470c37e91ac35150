// termination.h - decides when workers are asked to end and when they are made to.
// Pure: told the time and what happened, it answers what to do; the supervisor does it. One thread.
//
//   running --failure or signal--> terminating --grace over or second signal--> killing --> given
//   up
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace hvd::launch {

enum class TerminationStep { kRunning, kTerminating, kKilling, kGivenUp };
enum class TerminationAction { kNone, kSendTerminate, kSendKill, kGiveUp };

class Termination {
 public:
  // Some senders deliver a signal twice at once (to the process and to its group): that is not
  // somebody pressing Ctrl-C again.
  static constexpr Nanoseconds kRepeatGap = std::chrono::milliseconds(250);
  // SIGKILL cannot be refused, but a process that hangs in the kernel does not obey it.
  static constexpr Nanoseconds kKillPatience = std::chrono::seconds(10);

  explicit Termination(Nanoseconds grace) : grace_(grace) {}

  TerminationAction on_failure(TimePoint now);
  TerminationAction on_signal(int signal, TimePoint now);
  TerminationAction on_time(TimePoint now);

  TerminationStep step() const { return step_; }
  bool has_begun() const { return step_ != TerminationStep::kRunning; }
  Deadline deadline() const { return deadline_; }  // when on_time has something to say
  // The signal that began it; none if a failure did.
  std::optional<int> signal() const { return signal_; }

 private:
  TerminationAction begin(TimePoint now);
  TerminationAction kill(TimePoint now);

  Nanoseconds grace_;
  TerminationStep step_ = TerminationStep::kRunning;
  Deadline deadline_ = Deadline::never();
  std::optional<int> signal_;
  std::optional<TimePoint> signalled_at_;
};

}  // namespace hvd::launch
