#include "launch/ranks/termination.h"

namespace hvd::launch {

TerminationAction Termination::begin(TimePoint now) {
  step_ = TerminationStep::kTerminating;
  deadline_ = Deadline::after(grace_, now);
  return TerminationAction::kSendTerminate;
}

TerminationAction Termination::kill(TimePoint now) {
  step_ = TerminationStep::kKilling;
  deadline_ = Deadline::after(kKillPatience, now);
  return TerminationAction::kSendKill;
}

TerminationAction Termination::on_failure(TimePoint now) {
  return has_begun() ? TerminationAction::kNone : begin(now);
}

TerminationAction Termination::on_signal(int signal, TimePoint now) {
  const bool repeated = signalled_at_ && now - *signalled_at_ < kRepeatGap;
  signalled_at_ = signalled_at_.value_or(now);
  switch (step_) {
    case TerminationStep::kRunning:
      signal_ = signal;
      return begin(now);
    case TerminationStep::kTerminating:
      // After a failure the first Ctrl-C says "I have waited enough": the workers were asked
      // already.
      return repeated ? TerminationAction::kNone : kill(now);
    case TerminationStep::kKilling:
    case TerminationStep::kGivenUp:
      return TerminationAction::kNone;
  }
  return TerminationAction::kNone;
}

TerminationAction Termination::on_time(TimePoint now) {
  if (!deadline_.passed(now)) return TerminationAction::kNone;
  switch (step_) {
    case TerminationStep::kTerminating:
      return kill(now);
    case TerminationStep::kKilling:
      step_ = TerminationStep::kGivenUp;
      deadline_ = Deadline::never();
      return TerminationAction::kGiveUp;
    case TerminationStep::kRunning:
    case TerminationStep::kGivenUp:
      return TerminationAction::kNone;
  }
  return TerminationAction::kNone;
}

}  // namespace hvd::launch
