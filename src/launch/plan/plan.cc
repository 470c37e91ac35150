#include "launch/plan/plan.h"

#include <algorithm>
#include <array>

#include "base/failure_note.h"
#include "base/text.h"
#include "launch/plan/assignment.h"
#include "launch/plan/mpi_command.h"
#include "launch/plan/ssh_command.h"

namespace hvd::launch {
namespace {

constexpr char kTimeoutVariable[] = "HOROVOD_GLOO_TIMEOUT_SECONDS";

// Variables of the launcher's own login; on another host they would be wrong.
bool describes_session(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name == "HOSTNAME" || name == "_" || name == "SHLVL" || name.starts_with("SSH_");
}

// A worker may start a job of its own, which has another key, another store and other ranks.
bool belongs_to_outer_job(std::string_view entry) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "HOROVOD_KEY_FD",     "HOROVOD_STORE_ADDRESSES", "HOROVOD_RANK",       "HOROVOD_SIZE",
      "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",      "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE",
      "HOROVOD_HOSTNAME",   "HOROVOD_ELASTIC",         "HOROVOD_ELASTIC_FD", kFailureNoteVariable};
  return std::find(kNames.begin(), kNames.end(), entry.substr(0, entry.find('='))) != kNames.end();
}

EnvironmentList flag_variables(const Options& options, const PlanInputs& inputs) {
  EnvironmentList list = options.tunables.to_environment();
  if (options.controller == Controller::kGloo) {
    list.emplace_back("HOROVOD_CONTROLLER=gloo");
    list.emplace_back("HOROVOD_CPU_OPERATIONS=gloo");
  }
  if (!options.network_interfaces.empty()) {
    // All of them: the core takes a list; Gloo's own variable had room for one.
    list.push_back(concat("HOROVOD_GLOO_IFACE=", join_text(options.network_interfaces, ",")));
    list.push_back(concat("NCCL_SOCKET_IFNAME=", join_text(options.network_interfaces, ",")));
  }
  if (options.mpi.tcp_only) list.emplace_back("NCCL_IB_DISABLE=1");
  const bool has_timeout =
      get_variable(list, kTimeoutVariable) || get_variable(inputs.environment, kTimeoutVariable);
  const auto& start_timeout =
      options.start_timeout ? options.start_timeout : inputs.settings.start_timeout;
  if (start_timeout && !has_timeout)
    list.push_back(concat(kTimeoutVariable, "=", start_timeout->count()));
  return list;
}

void set_all(EnvironmentList& environment, const EnvironmentList& values) {
  for (const std::string& entry : values) {
    const size_t equals = entry.find('=');
    set_variable(environment, entry.substr(0, equals), entry.substr(equals + 1));
  }
}

// Padded to the width of the last rank, so that directories sort by rank.
std::string rank_directory(const std::string& parent, int32_t rank, int32_t size) {
  const size_t width = concat(size - 1).size();
  const std::string digits = concat(rank);
  return concat(parent, "/rank.", std::string(width - digits.size(), '0'), digits);
}

// Different names of this machine become one host, under the first that means something elsewhere.
std::vector<LocatedHost> merge_local(const PlanInputs& inputs) {
  std::vector<LocatedHost> hosts;
  for (const LocatedHost& given : inputs.hosts) {
    if (given.slots.slots == 0) continue;  // it is part of the list, not of the job
    LocatedHost host = given;
    if (host.is_local && is_loopback_name(host.slots.host)) host.slots.host = inputs.hostname;
    const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const LocatedHost& known) {
      return known.slots.host == host.slots.host || (known.is_local && host.is_local);
    });
    if (same == hosts.end()) {
      hosts.push_back(std::move(host));
    } else {
      same->slots.slots += host.slots.slots;
    }
  }
  return hosts;
}

}  // namespace

EnvironmentList place_variables(const topology::Topology& place) {
  return {concat("HOROVOD_RANK=", place.rank),
          concat("HOROVOD_SIZE=", place.size),
          concat("HOROVOD_LOCAL_RANK=", place.local_rank),
          concat("HOROVOD_LOCAL_SIZE=", place.local_size),
          concat("HOROVOD_CROSS_RANK=", place.cross_rank),
          concat("HOROVOD_CROSS_SIZE=", place.cross_size),
          concat("HOROVOD_HOSTNAME=", place.hostname)};
}

EnvironmentList worker_environment(const Plan& plan, const WorkerPlan& worker) {
  return worker_environment(plan, worker.variables, plan.hosts[worker.host].is_local);
}

EnvironmentList worker_environment(const Plan& plan, const EnvironmentList& variables,
                                   bool is_local) {
  EnvironmentList list = plan.environment;
  if (!is_local) {
    std::erase_if(list, [](const std::string& entry) {
      return !is_exportable(entry) || describes_session(entry);
    });
  }
  set_all(list, variables);
  return list;
}

Result<Plan> make_plan(const Options& options, const PlanInputs& inputs) {
  const std::vector<LocatedHost> hosts = merge_local(inputs);
  std::vector<HostSlots> slots;
  for (const LocatedHost& host : hosts) slots.push_back(host.slots);
  HVD_TRY_ASSIGN(const std::vector<Assignment> ranks, assign_ranks(slots, options.num_proc));

  Plan plan;
  plan.hosts_source = inputs.hosts_source;
  plan.start_timeout =
      options.start_timeout.value_or(inputs.settings.start_timeout.value_or(kDefaultStartTimeout));
  plan.flag_variables = flag_variables(options, inputs);
  plan.environment = inputs.environment;
  std::erase_if(plan.environment, belongs_to_outer_job);
  set_all(plan.environment, plan.flag_variables);
  set_variable(plan.environment, "HOROVOD_JOB_ID", inputs.job_id);
  // Otherwise Python holds back its output until it ends, because it writes to a pipe.
  set_variable(plan.environment, "PYTHONUNBUFFERED", "1");

  HVD_TRY_ASSIGN(const RemoteShell shell,
                 RemoteShell::choose(options, inputs.environment, plan.start_timeout));
  const std::string& remote = inputs.settings.remote_executable;
  for (const Assignment& rank : ranks) {
    const LocatedHost& host = hosts[rank.host];
    if (rank.host == plan.hosts.size()) {
      HostPlan entry{.name = host.slots.host,
                     .slots = host.slots.slots,
                     .is_local = host.is_local,
                     .ranks = {},
                     .agent_command = {}};
      if (!host.is_local) {
        entry.agent_command = shell.command_for(
            host.slots.host, agent_command(remote.empty() ? inputs.executable : remote),
            host.ssh_policy);
      }
      plan.hosts.push_back(std::move(entry));
    }
    plan.hosts.back().ranks.push_back(rank.place.rank);
    WorkerPlan worker{.place = rank.place,
                      .host = rank.host,
                      .variables = place_variables(rank.place),
                      .output_directory = {}};
    worker.place.job_id = inputs.job_id;
    if (!options.output_directory.empty()) {
      worker.output_directory =
          rank_directory(options.output_directory, rank.place.rank, options.num_proc);
    }
    plan.workers.push_back(std::move(worker));
  }
  return plan;
}

}  // namespace hvd::launch
