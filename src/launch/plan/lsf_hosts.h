// lsf_hosts.h - the hosts of an LSF job, as the Cluster System Manager's queries print them.
// Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/os/environment_list.h"
#include "launch/plan/hosts.h"
#include "launch/plan/jsrun_command.h"

namespace hvd::launch {

inline constexpr char kCsmAllocationQuery[] = "/opt/ibm/csm/bin/csm_allocation_query";
inline constexpr char kCsmNodeQuery[] = "/opt/ibm/csm/bin/csm_node_attributes_query";

bool is_lsf_job(const EnvironmentList& environment);

// The compute nodes in the output of csm_allocation_query.
Result<std::vector<std::string>> compute_nodes(std::string_view allocation);

// Cores and GPUs of a node in the output of csm_node_attributes_query.
Result<NodeShape> node_shape(std::string_view attributes);

// "Thread(s) per core" in the output of lscpu.
Result<int32_t> threads_per_core(std::string_view lscpu);

}  // namespace hvd::launch
