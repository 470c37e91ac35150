// driver.inc.h - the waiting loops of Driver, templates: what is waited for is the caller's. See
// driver.h.
#pragma once

#include <sched.h>

#include <algorithm>

#include "engine/drive/driver.h"
#include "shm/futex.h"

namespace hvd::engine {

// Sleeps end after this even if nobody rings: a lost wake-up costs that much once and is counted.
inline constexpr Nanoseconds kLongestSleep = std::chrono::milliseconds(100);
// With a full ring we wait for peers to consume records, which nobody announces.
inline constexpr Nanoseconds kOverflowSleep = std::chrono::milliseconds(1);
// Polls without progress before a peer that nobody drives is woken (about 6 us).
inline constexpr int kLateRingPolls = 200;
inline constexpr int kBlindYields = 8;
inline constexpr int kSpinsPerYield = 16;

// At the end of every call that waits, so inlined there.
inline void Driver::give_role_back() {
  view_.role.give_back();
  view_.waiters.notify_if_any();
  if (HVD_UNLIKELY(job().header().parked.load(std::memory_order_seq_cst) != 0))
    view_.sets.global().ring();
}

inline void Driver::leave() {
  for (;;) {
    const uint64_t seen = view_.pending.submitted();
    bool wake = false;
    if (HVD_UNLIKELY(seen != view_.pending.finished())) {
      const StepResult result = step_all(Channel::Effort::kAllSmall);
      wake = view_.pending.any_background() ||
             (result == StepResult::kLargeWaiting && view_.waiting.has_idle_cores() &&
              view_.surroundings.settings.progress != ProgressPolicy::kWaiter);
    }
    give_role_back();
    if (HVD_UNLIKELY(wake)) job().wake_background(job().rank());
    // Another thread that submitted while we held the role relied on us.
    if (HVD_LIKELY(view_.pending.submitted(std::memory_order_seq_cst) == seen) ||
        !view_.role.try_take())
      return;
  }
}

// Gives others a turn. On a crowded machine each may take milliseconds, so that the sleep after
// which we look around would be a minute away: then we look meanwhile.
inline void Driver::yield(TimePoint& look_at) {
  sched_yield();
  const TimePoint now = std::chrono::steady_clock::now();
  const bool is_first = look_at == TimePoint::min();
  if (!is_first && now < look_at) return;
  look_at = now + kLongestSleep;
  if (!is_first) view_.lookout.look();
}

template <typename Done>
void Driver::drive(Channel& first, const Done& done, Deadline deadline) {
  uint32_t advanced = 0;
  // Once per wait: a new tuning holds from the next one on.
  const int quick_polls = view_.waiting.quick_polls();
  const int spin_count = view_.waiting.spin_count();
  const int yield_count = view_.waiting.yield_count();
  TimePoint look_at = TimePoint::min();
  for (int idle = 0;;) {
    // Peers that run in step with us answer within these looks, which cost nothing but a load.
    for (int quick = 0; idle == 0 && quick < quick_polls && first.is_waiting(); ++quick)
      cpu_pause();
    if (first.step(Channel::Effort::kOne) == StepResult::kAdvanced) {
      idle = 0;
      if (HVD_LIKELY(done())) return;
      // Others may keep us busy for ever: a deadline holds all the same.
      if (++advanced % 64 == 0 && deadline.passed()) return;
      continue;
    }
    if (done()) return;
    if (pump()) {
      idle = 0;
      continue;
    }
    if (HVD_UNLIKELY(view_.failure.is_broken() || !first.failure().is_ok())) {
      view_.lookout.handle_failures();
      return;
    }
    ++idle;
    if (idle == 1) {
      // What was published must be visible before anybody is believed to be awake.
      view_.role.fence();
      first.ring();
      if (deadline.passed()) return;
    }
    if (!is_alone(first) && step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      if (done()) return;
      continue;
    }
    if (idle == kLateRingPolls) view_.statistics.late_rings.add(first.ring_late_peers());
    const int spins = spin_count / first.look_cost();
    if (idle < spins) {
      if (view_.mirror != nullptr && idle % kSpinsPerYield == 0) {
        yield(look_at);  // hvd-net and ranks of other hosts may need this core
        if (deadline.passed()) return;
      } else {
        cpu_pause();
      }
      continue;
    }
    // A peer that nobody drives may be about to call: it gets a few turns before we sleep.
    if (idle < spins + std::min(yield_count, kBlindYields) ||
        (idle < spins + yield_count && first.waits_for_driven_peers())) {
      yield(look_at);
      if (deadline.passed()) return;
      continue;
    }
    view_.statistics.late_rings.add(first.ring_late_peers());
    if (deadline.passed()) return;
    // What a look before sleeping did (a decision, above all) is told to sleepers like all else.
    if (park(first, done, deadline)) idle = 0;
    if (view_.failure.is_broken()) {
      view_.lookout.handle_failures();
      return;
    }
  }
}

template <typename Done>
bool Driver::park(Channel& first, const Done& done, Deadline deadline) {
  shm::RankBlock& mine = job().mine();
  view_.statistics.parks.add();
  uint64_t want = shm::pack(want_of(first));
  mine.want.store(want, std::memory_order_relaxed);
  mine.park.store(1, std::memory_order_seq_cst);
  job().header().parked.fetch_add(1, std::memory_order_seq_cst);
  // Look again after saying that we sleep. A look may move on to another wait without getting
  // anything done: then say that, and look once more.
  bool work = false;
  for (;;) {
    view_.role.fence();
    work = step_all(Channel::Effort::kEverything) == StepResult::kAdvanced || done() ||
           view_.failure.is_broken(std::memory_order_seq_cst);
    const uint64_t fresh = shm::pack(want_of(first));
    if (work || fresh == want) break;
    want = fresh;
    mine.want.store(want, std::memory_order_seq_cst);
  }
  auto result = shm::FutexResult::kWoken;
  const bool is_full = first.has_overflow() || must_poll();
  if (!work && net_thread_ != nullptr) arm_net_thread();
  if (!work)
    result =
        shm::futex_wait(mine.park, 1, deadline.remaining(is_full ? kOverflowSleep : kLongestSleep));
  if (net_thread_ != nullptr) net_thread_->disarm();
  const bool rung = mine.park.load(std::memory_order_seq_cst) == 0;
  job().header().parked.fetch_sub(1, std::memory_order_seq_cst);
  mine.park.store(0, std::memory_order_seq_cst);
  if (result != shm::FutexResult::kTimedOut) {
    if (work) return true;
    if (job().header().leaving.load(std::memory_order_acquire) != 0) {
      view_.lookout.look();
    } else {
      view_.lookout.look_if_due();
    }
    return false;
  }
  const bool advanced = step_all(Channel::Effort::kEverything) == StepResult::kAdvanced;
  if (!advanced) {
    view_.lookout.look();
  } else if (!rung && !is_full) {
    view_.statistics.rescued_wakes.add();
  }
  return advanced;
}

template <typename Done>
Status Driver::wait_until(const Done& done, Channel& first, Deadline deadline) {
  for (bool first_look = true; !done(); first_look = false) {
    if (!first_look && deadline.passed()) {
      return Status(StatusCode::kTimedOut, "the operation is not complete yet");
    }
    if (view_.role.try_take()) {
      drive(first, done, deadline);
      view_.timelines.mark_cycle();
      leave();
    } else {
      wait_for_role_holder(done, deadline);
    }
  }
  return Status::ok();
}

template <typename Done>
void Driver::wait_for_role_holder(const Done& done, Deadline deadline) {
  constexpr int kLocalSpins = 2000;
  const int spins = view_.waiting.spin_count() > 0 ? kLocalSpins : 0;
  for (int i = 0; i < spins; ++i) {
    if (done() || !view_.role.is_taken()) return;
    cpu_pause();
  }
  // The background thread sleeps with the role only while nobody waits.
  const auto begin = [&] {
    if (background_sleeps_.load(std::memory_order_seq_cst)) job().wake(job().rank());
  };
  const auto is_needless = [&] { return done() || !view_.role.is_taken(); };
  const auto result = view_.waiters.wait(begin, is_needless, deadline.remaining(kLongestSleep));
  if (result == shm::FutexResult::kTimedOut && done()) view_.statistics.rescued_wakes.add();
}

}  // namespace hvd::engine
