// join.h - from an MPI communicator to a job: who runs where, and what carries bytes between hosts.
// Called once per init on every rank; blocks until all have come or the deadline has passed.
#pragma once

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "bootstrap/join_network.h"
#include "mpi/choice.h"
#include "mpi/group.h"
#include "topology/topology.h"

namespace hvd::mpi {

struct Joined {
  topology::Topology topology;
  bootstrap::Network network;  // no mesh: all ranks are on one host
};

// With our own link the key of the job is a fresh one that travels through MPI.
Result<Joined> join(Group& group, const Environment& environment, Carrier carrier, uint64_t epoch,
                    Deadline deadline);

// The communicator of some ranks of MPI_COMM_WORLD, this process among them. Blocks until they
// come.
Result<Comm> comm_of_ranks(Api& api, std::span<const int32_t> ranks);

}  // namespace hvd::mpi
