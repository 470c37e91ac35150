// waiting_policy.h - how long a thread that waits looks before it sleeps: decided from ranks and
// cores, or by settings; the autotuner may change it. Read by all threads that wait, one value at a
// time; changed with the role.
#pragma once

#include <atomic>

#include "base/engine_role.h"
#include "engine/sets/surroundings.h"
#include "tune/axes.h"
#include "tune/tuning.h"

namespace hvd::engine {

class WaitingPolicy {
 public:
  explicit WaitingPolicy(const Surroundings& surroundings);

  // Looks at the next record alone, which cost a load.
  int quick_polls() const { return quick_polls_.load(std::memory_order_relaxed); }
  int spin_count() const { return spin_count_.load(std::memory_order_relaxed); }
  int yield_count() const { return yield_count_.load(std::memory_order_relaxed); }
  // A core is left for the background thread while callers compute.
  bool has_idle_cores() const { return has_idle_cores_; }

  // What the user has set stays.
  void tuned(const tune::Tuning& tuning) HVD_REQUIRES(engine_role);
  // What the autotuner has to know of it.
  void describe(tune::Defaults& own) const;

 private:
  void set(int spin_count, int yield_count);

  const bool spin_is_fixed_, yield_is_fixed_;  // by settings
  const bool has_idle_cores_;
  int own_spin_count_, own_yield_count_;  // untuned
  std::atomic<int> quick_polls_{0};
  std::atomic<int> spin_count_{0};
  std::atomic<int> yield_count_{0};
};

}  // namespace hvd::engine
