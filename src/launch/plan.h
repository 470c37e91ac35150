// plan.h - decides what is started: one entry per rank, with its place in the job and its
// environment. Pure: host name, job id and environment are inputs. Spawning (spawn.h) only carries
// it out.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/environment_list.h"
#include "launch/launch_settings.h"
#include "launch/options.h"
#include "topology/topology.h"

namespace hvd::launch {

struct WorkerPlan {
  topology::Topology place;
  EnvironmentList environment;
  std::string output_directory;  // empty: no files
};

struct Plan {
  std::vector<WorkerPlan> workers;  // by rank
};

struct PlanInputs {
  std::string hostname;
  std::string job_id;
  EnvironmentList environment;
  LaunchSettings settings;
};

Result<Plan> make_plan(const Options& options, const PlanInputs& inputs);

}  // namespace hvd::launch
