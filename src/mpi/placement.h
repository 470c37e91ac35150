// placement.h - where the ranks of a communicator run: MPI numbers them, but its launchers say
// little about hosts, and nothing about those of a communicator that the program made. Every rank
// says its host through the store. Blocks until the deadline.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "store/store.h"
#include "topology/topology.h"

namespace hvd::mpi {

struct Place {
  int32_t rank = 0, size = 1;
  std::string hostname{};
  std::string host{};  // identity, see bootstrap/host_identity.h
};

// With a job id that is fresh, and the same on all ranks.
Result<topology::Topology> find_placement(const Place& self, store::Store& store, uint64_t epoch,
                                          Deadline deadline);

// Local and cross values of `rank`, from the hosts of all ranks. Pure.
topology::Topology placed_on(std::span<const std::string> hosts, int32_t rank);

}  // namespace hvd::mpi
