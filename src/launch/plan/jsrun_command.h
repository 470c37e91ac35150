// jsrun_command.h - jsrun in LSF jobs: the rank file and the command line. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/plan/hosts.h"
#include "launch/plan/mpi_command.h"

namespace hvd::launch {

// What one compute node of the allocation has.
struct NodeShape {
  int32_t core_count = 0;
  int32_t threads_per_core = 1;
  int32_t gpu_count = 0;
};

// One resource set per rank: an equal share of the processors, all GPUs visible.
Result<std::string> jsrun_rank_file(std::span<const HostSlots> hosts, int32_t num_proc,
                                    const NodeShape& shape);

struct JsrunRequest {
  const Options& options;
  std::string rank_file_path;  // used unless --binding-args says otherwise
  std::optional<MpiImplementation> implementation;
};

// One line for /bin/sh.
std::string jsrun_command_line(const JsrunRequest& request);

}  // namespace hvd::launch
