// placement.h - how far apart the cores are right now.
// A hypervisor moves virtual CPUs between neighbouring cores and other sockets at any moment; the
// round trip of one cache line tells. Figures count when it is near.
#pragma once

#include "collective/native/bare_group.h"
#include "placement_limit.h"
#include "world.h"

namespace hvd::bench {

class Placement {
 public:
  Placement(const World& world, native::BareGroup& group, int cores)
      : world_(world), group_(group), oversubscribed_(world.size() > cores) {}

  // Collective; the same value on all ranks. Between ranks 0 and 1 where each has a core; else
  // between two cores, by two threads of rank 0, because the ranks themselves wander.
  double round_trip_ns();

 private:
  const World& world_;
  native::BareGroup& group_;
  bool oversubscribed_;
};

}  // namespace hvd::bench
