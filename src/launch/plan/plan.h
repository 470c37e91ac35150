// plan.h - decides what is started: hosts, how each is reached, one entry per rank with its place
// in the job and its environment. Pure: host name, job id, environment and hosts are inputs.
// Starting (start.h, remote_host.h) and --plan-json only carry it out.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/options/launch_settings.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"
#include "launch/plan/hosts.h"
#include "launch/plan/ssh_command.h"
#include "topology/topology.h"

namespace hvd::launch {

struct WorkerPlan {
  topology::Topology place;
  size_t host;                   // index into Plan::hosts
  EnvironmentList variables;     // those of this rank alone
  std::string output_directory;  // empty: no files
};

struct HostPlan {
  std::string name;
  int32_t slots;
  bool is_local;
  std::vector<int32_t> ranks;
  std::vector<std::string> agent_command;  // argv that reaches its agent; empty if local
};

struct Plan {
  std::vector<HostPlan> hosts;      // those that have ranks
  std::vector<WorkerPlan> workers;  // by rank
  EnvironmentList environment;      // of all workers: ours, and what the options say
  EnvironmentList flag_variables;   // the part of it that the options say
  std::chrono::seconds start_timeout;
  std::string hosts_source;  // where the list of hosts came from, for people
};

struct LocatedHost {
  HostSlots slots;
  bool is_local = true;
  OwnPolicy ssh_policy = OwnPolicy::kLenient;  // of others
};

struct PlanInputs {
  std::string hostname;
  std::string job_id;
  std::string executable;  // of this program
  EnvironmentList environment;
  LaunchSettings settings;
  std::vector<LocatedHost> hosts;
  std::string hosts_source = {};
};

// options.num_proc must be known. Entries of inputs.hosts that are this machine count as one host.
Result<Plan> make_plan(const Options& options, const PlanInputs& inputs);

// Everything that the worker finds in its environment, except what only its host knows (the
// descriptor of the key, and on another host the variables of a login there).
EnvironmentList worker_environment(const Plan& plan, const WorkerPlan& worker);
// The same for a worker that is not in the plan.
EnvironmentList worker_environment(const Plan& plan, const EnvironmentList& variables,
                                   bool is_local);

// HOROVOD_RANK and its relatives.
EnvironmentList place_variables(const topology::Topology& place);

}  // namespace hvd::launch
