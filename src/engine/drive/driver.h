// driver.h - who steps this rank's channels, and how threads wait. A caller that waits takes the
// role and drives: it looks for a while, lets others run, then sleeps on its word in shared memory;
// a caller that finds the role taken waits for its holder. Whoever gives the role back leaves
// nothing behind that needs an engine. Only what waits blocks, and only up to its deadline.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "engine/channel/channel.h"
#include "engine/drive/timelines.h"
#include "engine/drive/waiting_policy.h"
#include "engine/health/lookout.h"
#include "engine/operation/local_waiters.h"
#include "engine/operation/pending.h"
#include "engine/operation/role.h"
#include "engine/operation/statistics.h"
#include "engine/sets/met_sets.h"
#include "engine/sets/process_sets.h"
#include "engine/sets/surroundings.h"
#include "mirror/mirror.h"
#include "mirror/net_thread.h"

namespace hvd::engine {

// What the driver steps and asks; all of it outlives it.
struct DriverView {
  const Surroundings& surroundings;
  mirror::Mirror* mirror;  // null: one host
  EngineRole& role;
  Pending& pending;
  LocalWaiters& waiters;
  Failure& failure;
  ProcessSets& sets;
  MetSets& met_sets;
  Lookout& lookout;
  const Timelines& timelines;
  const WaitingPolicy& waiting;
  Statistics& statistics;
};

class Driver {
 public:
  explicit Driver(const DriverView& view) : view_(view) {}

  // Jobs on several hosts: looks after the streams while a driver sleeps. Before others drive.
  void use(mirror::NetThread& net_thread) { net_thread_ = &net_thread; }

  bool try_take_role() HVD_TRY_ACQUIRE(true, engine_role) { return view_.role.try_take(); }
  // A waiter gives the role back: is there work that needs an engine, and nobody to do it?
  void leave() HVD_RELEASE(engine_role);
  // Without looking for such work.
  void give_role_back() HVD_RELEASE(engine_role);
  void yield(TimePoint& look_at) HVD_REQUIRES(engine_role);

  StepResult step_all(Channel::Effort effort) HVD_REQUIRES(engine_role);
  // Steps until `done`, a failure or the deadline. `first` is what is waited for.
  template <typename Done>
  void drive(Channel& first, const Done& done, Deadline deadline) HVD_REQUIRES(engine_role);
  // Sleeps once. True: it got something done instead of sleeping, or when nobody rang.
  template <typename Done>
  bool park(Channel& first, const Done& done, Deadline deadline) HVD_REQUIRES(engine_role);
  // Runs what all ranks have agreed on; peers may still need this rank for it.
  void drain(Deadline deadline) HVD_REQUIRES(engine_role);
  void ring_sleepers() HVD_REQUIRES(engine_role);

  // Drives, or waits for whoever does. TIMED_OUT: the deadline has passed.
  template <typename Done>
  Status wait_until(const Done& done, Channel& first, Deadline deadline);
  template <typename Done>
  void wait_for_role_holder(const Done& done, Deadline deadline);
  // Something was submitted: does now what needs no waiting, and sees to it that somebody drives
  // the rest.
  void after_submit(bool in_background, bool waiter_only);

  // While it is so, a thread that begins to wait wakes the sleeper. See Background.
  void set_background_sleeps(bool sleeps) {
    background_sleeps_.store(sleeps, std::memory_order_seq_cst);
  }
  bool anybody_waits() const { return view_.waiters.any(); }

 private:
  // No other channel needs stepping while this one is driven.
  bool is_alone(const Channel& first) const HVD_REQUIRES(engine_role) {
    return view_.sets.open_channels().size() == 1 && !first.is_closed() &&
           !view_.met_sets.any_changes();
  }
  shm::Want want_of(const Channel& first) const HVD_REQUIRES(engine_role) {
    return is_alone(first) ? first.want() : shm::Want{};
  }
  // A channel waits for something that rings no bell: sleep briefly.
  bool must_poll() const HVD_REQUIRES(engine_role);
  // What the streams brought while this thread waits. True: look again.
  bool pump() { return HVD_UNLIKELY(view_.mirror != nullptr) && view_.mirror->pump(); }
  void arm_net_thread() HVD_REQUIRES(engine_role);
  shm::Job& job() const { return *view_.surroundings.job; }

  const DriverView view_;
  mirror::NetThread* net_thread_ = nullptr;
  std::atomic<bool> background_sleeps_{false};  // with the role
};

}  // namespace hvd::engine
