// slurm_hosts.h - the hosts of a Slurm allocation, from the variables of a batch script.
// Pure; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/os/environment_list.h"
#include "launch/plan/hosts.h"
#include "topology/node_list.h"

namespace hvd::launch {

using topology::expand_nodelist;

// "2(x3),1" -> 2 2 2 1
Result<std::vector<int32_t>> expand_counts(std::string_view text);

// None outside of an allocation, and inside a task of srun: that one has been placed already.
Result<std::optional<std::vector<HostSlots>>> slurm_hosts(const EnvironmentList& environment);

}  // namespace hvd::launch
