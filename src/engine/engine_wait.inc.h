// engine_wait.inc.h - the waiting loops of Engine, templates shared by its source files. See
// engine.h.
#pragma once

#include <sched.h>

#include <algorithm>

#include "engine/engine.h"
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

template <typename Done>
void Engine::drive(Channel& first, const Done& done, Deadline deadline) {
  uint32_t advanced = 0;
  // Once per wait: a new tuning holds from the next one on.
  const int quick_polls = quick_polls_.load(std::memory_order_relaxed);
  const int spin_count = spin_count_.load(std::memory_order_relaxed);
  const int yield_count = yield_count_.load(std::memory_order_relaxed);
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
    if (HVD_UNLIKELY(is_broken_.load(std::memory_order_relaxed) || !first.failure().is_ok())) {
      handle_failures();
      return;
    }
    ++idle;
    if (idle == 1) {
      // What was published must be visible before anybody is believed to be awake.
      role_.fence();
      first.ring();
      if (deadline.passed()) return;
    }
    if (!is_alone(first) && step_all(Channel::Effort::kEverything) == StepResult::kAdvanced) {
      idle = 0;
      if (done()) return;
      continue;
    }
    if (idle == kLateRingPolls) statistics_.late_rings.add(first.ring_late_peers());
    if (idle < spin_count) {
      if (mirror_ != nullptr && idle % kSpinsPerYield == 0) {
        sched_yield();  // hvd-net and ranks of other hosts may need this core
      } else {
        cpu_pause();
      }
      continue;
    }
    // A peer that nobody drives may be about to call: it gets a few turns before we sleep.
    if (idle < spin_count + std::min(yield_count, kBlindYields) ||
        (idle < spin_count + yield_count && first.waits_for_driven_peers())) {
      sched_yield();
      continue;
    }
    statistics_.late_rings.add(first.ring_late_peers());
    if (deadline.passed()) return;
    // What a look before sleeping did (a decision, above all) is told to sleepers like all else.
    if (park(first, done, deadline)) idle = 0;
    if (is_broken_.load(std::memory_order_relaxed)) {
      handle_failures();
      return;
    }
  }
}

// True: it got something done instead of sleeping, or when nobody rang.
template <typename Done>
bool Engine::park(Channel& first, const Done& done, Deadline deadline) {
  shm::RankBlock& mine = job_->mine();
  statistics_.parks.add();
  uint64_t want = shm::pack(want_of(first));
  mine.want.store(want, std::memory_order_relaxed);
  mine.park.store(1, std::memory_order_seq_cst);
  job_->header().parked.fetch_add(1, std::memory_order_seq_cst);
  // Look again after saying that we sleep. A look may move on to another wait without getting
  // anything done: then say that, and look once more.
  bool work = false;
  for (;;) {
    role_.fence();
    work = step_all(Channel::Effort::kEverything) == StepResult::kAdvanced || done() ||
           is_broken_.load(std::memory_order_seq_cst);
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
  job_->header().parked.fetch_sub(1, std::memory_order_seq_cst);
  mine.park.store(0, std::memory_order_seq_cst);
  if (result != shm::FutexResult::kTimedOut) {
    if (!work && job_->header().leaving.load(std::memory_order_acquire) != 0)
      look_after_idle(first);
    return work;
  }
  const bool advanced = step_all(Channel::Effort::kEverything) == StepResult::kAdvanced;
  if (!advanced) {
    look_after_idle(first);
  } else if (!rung && !is_full) {
    statistics_.rescued_wakes.add();
  }
  return advanced;
}

template <typename Done>
Status Engine::wait_until(const Done& done, Channel& first, Deadline deadline) {
  for (bool first_look = true; !done(); first_look = false) {
    if (!first_look && deadline.passed()) {
      return Status(StatusCode::kTimedOut, "the operation is not complete yet");
    }
    if (role_.try_take()) {
      drive(first, done, deadline);
      leave();
    } else {
      wait_for_role_holder(done, deadline);
    }
  }
  return Status::ok();
}

template <typename Done>
void Engine::wait_for_role_holder(const Done& done, Deadline deadline) {
  constexpr int kLocalSpins = 2000;
  const int spins = spin_count_.load(std::memory_order_relaxed) > 0 ? kLocalSpins : 0;
  for (int i = 0; i < spins; ++i) {
    if (done() || !role_.is_taken()) return;
    cpu_pause();
  }
  local_waiters_.fetch_add(1, std::memory_order_seq_cst);
  // The background thread sleeps with the role only while nobody waits.
  if (background_sleeps_with_role_.load(std::memory_order_seq_cst)) job_->wake(job_->rank());
  const uint32_t event = local_event_.load(std::memory_order_seq_cst);
  if (!done() && role_.is_taken()) {
    const auto result = shm::futex_wait(local_event_, event, deadline.remaining(kLongestSleep));
    if (result == shm::FutexResult::kTimedOut && done()) statistics_.rescued_wakes.add();
  }
  local_waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace hvd::engine
