#include "engine/drive/driver.h"

#include "engine/drive/driver.inc.h"

namespace hvd::engine {

void Driver::ring_sleepers() {
  for (Channel* channel : view_.sets.open_channels()) channel->ring();
}

StepResult Driver::step_all(Channel::Effort effort) {
  const bool pumped = pump();
  StepResult result = StepResult::kNothing;
  if (HVD_UNLIKELY(view_.met_sets.any_changes()) && view_.met_sets.settle()) view_.waiters.notify();
  // By index: an operation of the global set may open or close a channel.
  for (size_t i = 0; i < view_.sets.open_channels().size(); ++i) {
    Channel& channel = *view_.sets.open_channels()[i];
    const StepResult one = channel.step(effort);
    if (one == StepResult::kAdvanced ||
        (one == StepResult::kLargeWaiting && result == StepResult::kNothing))
      result = one;
    if (HVD_UNLIKELY(!channel.failure().is_ok() && !view_.failure.is_broken())) {
      view_.failure.fail(channel.failure(), view_.surroundings.rank());
      view_.lookout.fail_everything(view_.failure.health());
      return StepResult::kAdvanced;
    }
  }
  if (result == StepResult::kAdvanced) view_.timelines.mark_cycle();
  return pumped && result == StepResult::kNothing ? StepResult::kAdvanced : result;
}

void Driver::drain(Deadline deadline) {
  for (int idle = 0; !view_.failure.is_broken();) {
    if (step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      continue;
    }
    const bool is_over = !view_.lookout.is_busy() || view_.lookout.waits_for_somebody_who_left();
    if (deadline.passed() || (is_over && !view_.lookout.streams_are_late())) return;
    if (++idle < view_.waiting.spin_count()) {
      cpu_pause();
    } else {
      for (Channel* channel : view_.sets.open_channels()) channel->ring_late_peers();
      // Streams ring nobody when works that were reported end.
      const Nanoseconds nap = deadline.remaining(is_over ? kOverflowSleep : kLongestSleep);
      park(
          view_.sets.global(), [] { return false; }, Deadline::after(nap));
    }
  }
}

bool Driver::must_poll() const {
  const auto& channels = view_.sets.open_channels();
  return std::any_of(channels.begin(), channels.end(),
                     [](const Channel* channel)
                         HVD_REQUIRES(engine_role) { return channel->must_poll(); });
}

void Driver::arm_net_thread() {
  std::vector<pollfd> data;
  for (Channel* channel : view_.sets.open_channels()) channel->add_wanted_descriptors(data);
  net_thread_->arm(std::move(data));
}

void Driver::after_submit(bool in_background, bool waiter_only) {
  if (in_background) {
    job().wake(job().rank());  // the background thread may sleep with the role
    job().wake_background(job().rank());
    return;
  }
  if (!view_.role.try_take()) return;
  const StepResult result = step_all(Channel::Effort::kAllSmall);
  if (HVD_UNLIKELY(view_.failure.is_broken())) view_.lookout.handle_failures();
  leave();
  if (result != StepResult::kLargeWaiting || waiter_only || !view_.waiting.has_idle_cores()) return;
  // Agreed large work and nobody drives: with a core to spare it can overlap with the caller's
  // computation.
  for (int rank = 0; rank < job().size(); ++rank) {
    if (!job().is_driven(rank)) job().wake_background(rank);
  }
}

}  // namespace hvd::engine
