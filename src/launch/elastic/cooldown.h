// cooldown.h - how long a host whose worker failed gets no new workers. Those that live there stay.
// Pure: time and chance are parameters. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace hvd::launch {

struct CooldownRules {
  // --blacklist-cooldown-range, in seconds. None: a host that failed gets no workers any more, as
  // long as there are others to turn to.
  std::optional<std::pair<int32_t, int32_t>> range = {};
};

class Cooldown {
 public:
  // A worker there failed. `chance` is from 0 to 1. `is_only_host`: a job on one host has nowhere
  // else to go, so there a worker that crashed is started again after a second, two, four, ... at
  // most a minute; a minute without a failure forgives the ones before. Failures while the host
  // cools down are part of the same trouble.
  void note_failure(TimePoint now, const CooldownRules& rules, double chance, bool is_only_host);

  bool is_over(TimePoint now) const { return now >= until_; }
  bool is_for_good() const { return until_ == TimePoint::max(); }
  TimePoint until() const { return until_; }

 private:
  TimePoint until_ = TimePoint::min();
  int failures_ = 0;
};

}  // namespace hvd::launch
