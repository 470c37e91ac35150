// two_level.h - one reduction as two: among the members of each host, then among the hosts.
// Sums are scaled last. Averages of floats are averages of averages, so that elements which are
// equal everywhere stay what they are on both levels: a host counts as often as it has members.
// All paths split in this way, so that their bits are the same. Pure; any thread.
#pragma once

#include "collective/hosts/layout.h"
#include "collective/numeric.h"

namespace hvd::collective::hosts {

// How the level between hosts adds: all hosts at once, or one after the other, which cannot count
// a host more than once.
enum class HostOrder { kAtOnce, kRing };

struct TwoLevel {
  bool is_mean_of_means;
  Numeric between;  // of what the hosts have, in the form of slots

  static TwoLevel of(const Numeric& numeric, const HostLayout& layout,
                     HostOrder order = HostOrder::kAtOnce);
  // For the members of one host.
  Scale inside(size_t members) const {
    return is_mean_of_means ? Scale{1.0, static_cast<int64_t>(members)} : Scale{};
  }
};

// As combine, with one slot per host and `own` a host.
void combine_between(const HostLayout& layout, const Numeric& between, const Combine& args);

}  // namespace hvd::collective::hosts
