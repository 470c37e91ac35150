// assignment.h - which rank runs where: hosts are filled one after the other. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "launch/plan/hosts.h"
#include "topology/topology.h"

namespace hvd::launch {

struct Assignment {
  size_t host;  // index into the hosts that were given
  topology::Topology place;
};

// By rank. The cross rank of a local rank counts the hosts that have that local rank. Fails if the
// hosts have fewer slots than workers.
Result<std::vector<Assignment>> assign_ranks(std::span<const HostSlots> hosts, int32_t num_proc);

}  // namespace hvd::launch
