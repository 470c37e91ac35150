#include "engine/drive/waiting_policy.h"

#include <algorithm>

namespace hvd::engine {
namespace {

// Looks before a waiting thread sleeps. One at shared memory takes 30 ns; one at the streams of
// other hosts is a system call per host, and may keep a core from whom we wait for: hosts can be
// containers of one machine.
int spins_for(const topology::HostMap& hosts) {
  const auto others = static_cast<int>(hosts.ranks_of.size()) - 1;
  return others < 1 ? 4000 : std::max(32, 250 / others);
}

int ranks_here(const Surroundings& surroundings) {
  return static_cast<int>(surroundings.job->ranks_here().size());
}

}  // namespace

WaitingPolicy::WaitingPolicy(const Surroundings& surroundings)
    : spin_is_fixed_(surroundings.settings.spin_count >= 0),
      yield_is_fixed_(surroundings.settings.yield_count >= 0),
      has_idle_cores_(surroundings.job->core_count() > ranks_here(surroundings)) {
  // Spinning with more runnable ranks than cores costs a scheduler tick per hop; a wake-up costs
  // what ~110 us of spinning do.
  const Settings& settings = surroundings.settings;
  const bool crowded = ranks_here(surroundings) > surroundings.job->core_count();
  own_spin_count_ = spin_is_fixed_ ? static_cast<int>(settings.spin_count)
                                   : (crowded ? 0 : spins_for(surroundings.hosts));
  own_yield_count_ = yield_is_fixed_ ? static_cast<int>(settings.yield_count) : (crowded ? 50 : 0);
  set(own_spin_count_, own_yield_count_);
}

void WaitingPolicy::set(int spin_count, int yield_count) {
  constexpr int kMostQuickPolls = 48;
  quick_polls_.store(std::min(spin_count, kMostQuickPolls), std::memory_order_relaxed);
  spin_count_.store(spin_count, std::memory_order_relaxed);
  yield_count_.store(yield_count, std::memory_order_relaxed);
}

void WaitingPolicy::tuned(const tune::Tuning& tuning) {
  const int64_t spins = tuning.value_or(tune::Knob::kSpinCount, own_spin_count_);
  const int64_t yields = tuning.value_or(tune::Knob::kYieldCount, own_yield_count_);
  set(spin_is_fixed_ ? own_spin_count_ : static_cast<int>(spins),
      yield_is_fixed_ ? own_yield_count_ : static_cast<int>(yields));
}

void WaitingPolicy::describe(tune::Defaults& own) const {
  own.spin_count = own_spin_count_;
  own.yield_count = own_yield_count_;
  own.spin_is_fixed = spin_is_fixed_;
  own.yield_is_fixed = yield_is_fixed_;
}

}  // namespace hvd::engine
