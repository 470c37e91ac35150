// chaos.h - when --chaos kills a worker, and which: at random times around a mean. Pure: the time
// is a parameter, chance a seed. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

#include "base/clock.h"

namespace hvd::launch {

class Chaos {
 public:
  Chaos(Nanoseconds period, uint64_t seed, TimePoint now) : period_(period), chance_(seed) {
    plan(now);
  }

  TimePoint next_at() const { return next_at_; }

  // Whom to kill now; none: it is not time yet, or one alone is left.
  std::optional<int32_t> pick(TimePoint now, std::span<const int32_t> workers) {
    if (now < next_at_) return std::nullopt;
    plan(now);
    if (workers.size() < 2) return std::nullopt;
    return workers[std::uniform_int_distribution<size_t>(0, workers.size() - 1)(chance_)];
  }

 private:
  // From a half to one and a half of the period.
  void plan(TimePoint now) {
    const double factor = std::uniform_real_distribution<double>(0.5, 1.5)(chance_);
    next_at_ =
        now + Nanoseconds(static_cast<int64_t>(static_cast<double>(period_.count()) * factor));
  }

  Nanoseconds period_;
  std::mt19937_64 chance_;
  TimePoint next_at_{};
};

}  // namespace hvd::launch
