// placement.h - how far apart the cores are right now.
// A hypervisor moves virtual CPUs between neighbouring cores and other sockets at any moment; the
// round trip of one cache line tells. Figures count when it is near.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "placement_limit.h"
#include "world.h"

namespace hvd::bench {

class Placement {
 public:
  // `probe` is called on every rank; the value of the first one counts.
  Placement(const World& world, std::function<double()> probe)
      : world_(world), probe_(std::move(probe)) {}

  // Collective; the same value on all ranks.
  double round_trip_ns() { return world_.from_first(probe_()); }

 private:
  const World& world_;
  std::function<double()> probe_;
};

// Between two cores, by two threads of the first rank: for ranks that have no core of their own.
std::function<double()> probe_by_threads(const World& world);

// Between ranks 0 and 1 through a file that both can map, in a directory that all ranks see: for
// ranks that share a machine but no job.
std::function<double()> probe_through_file(const World& world, const std::string& directory);

}  // namespace hvd::bench
