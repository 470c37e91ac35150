// Workers of an elastic job, which are started at any time.
#include <unistd.h>

#include <chrono>

#include "base/text.h"
#include "launch/job/fleet_start.h"
#include "launch/link/agent_message.h"
#include "launch/plan/prepare.h"
#include "launch/plan/ssh_command.h"
#include "launch/plan/ssh_policy.h"

namespace hvd::launch {
namespace {

// The loop stands still meanwhile. A host about which ssh has not answered is taken for strict.
constexpr std::chrono::seconds kAskOneHostTime{3};

}  // namespace

Result<HostPlan> FleetStart::plan_host(const std::string& name) const {
  // Without ssh every other host has joined; one that has just left is told so by open_agent.
  if (fleet_.joined && name != fleet_.joined->own_name()) {
    return HostPlan{.name = name, .slots = 0, .is_local = false, .ranks = {}, .agent_command = {}};
  }
  HVD_TRY_ASSIGN(const std::string hostname, own_hostname());
  HostPlan host{.name = name,
                .slots = 0,
                .is_local = locate_hosts({{name, 1}}, hostname).front().is_local,
                .ranks = {},
                .agent_command = {}};
  if (host.is_local) return host;
  HVD_TRY_ASSIGN(const RemoteShell shell,
                 RemoteShell::choose(prepared_.options, prepared_.plan.environment,
                                     prepared_.plan.start_timeout));
  std::string executable = prepared_.settings.remote_executable;
  if (executable.empty()) {
    HVD_TRY_ASSIGN(executable, own_executable());
  }
  const auto policies =
      find_policies(shell, {name}, prepared_.plan.environment, Deadline::after(kAskOneHostTime));
  host.agent_command = shell.command_for(name, agent_command(executable), policies.front());
  return host;
}

EnvironmentList FleetStart::elastic_variables(const NewWorker& worker) const {
  EnvironmentList list = place_variables(worker.place);
  list.emplace_back("HOROVOD_ELASTIC=1");
  const auto timeout = prepared_.options.elastic.timeout ? prepared_.options.elastic.timeout
                                                         : prepared_.settings.elastic_timeout;
  if (timeout) list.push_back(concat("HOROVOD_ELASTIC_TIMEOUT=", timeout->count()));
  if (fleet_.store) {
    list.push_back(concat("HOROVOD_STORE_ADDRESSES=", fleet_.store->addresses()));
  }
  return list;
}

Status FleetStart::add_workers(const std::string& host, const std::vector<NewWorker>& workers) {
  const std::string& parent = prepared_.options.output_directory;
  for (const NewWorker& worker : workers) {
    HVD_TRY(open_output(worker.id, host,
                        parent.empty() ? parent : concat(parent, "/rank.", worker.id)));
  }
  HVD_TRY_ASSIGN(HostPlan plan, plan_host(host));
  if (plan.is_local) return add_local(workers);
  for (const NewWorker& worker : workers) plan.ranks.push_back(worker.id);
  added_hosts_.push_back(std::move(plan));
  return add_remote(added_hosts_.back(), workers);
}

Status FleetStart::add_local(const std::vector<NewWorker>& workers) {
  if (program_.empty()) {
    return precondition_error(
        concat("there is no program '", prepared_.options.command.front(), "' on this host"));
  }
  LocalStart request{.program = program_,
                     .command = prepared_.options.command,
                     .ranks = {},
                     .key = key_text(),
                     .first_stdin = STDIN_FILENO,
                     .is_elastic = true};
  for (const NewWorker& worker : workers) {
    request.ranks.push_back(
        {.rank = worker.id,
         .environment = worker_environment(prepared_.plan, elastic_variables(worker), true)});
  }
  if (fleet_.local) {
    for (const LocalRank& rank : request.ranks) HVD_TRY(fleet_.local->add(rank, signals_, limit_));
    return Status::ok();
  }
  const bool has_first = workers.front().id == 0;
  if (has_first && ::isatty(STDIN_FILENO) == 1) {
    HVD_TRY_ASSIGN(fleet_.stdin_pump, StdinPump::create(STDIN_FILENO));
    request.first_stdin = fleet_.stdin_pump->worker_end();
  }
  Result<LocalWorkers> started = LocalWorkers::start(request, signals_, limit_);
  if (!started) return started.status();
  fleet_.local.emplace(*std::move(started));
  if (fleet_.stdin_pump) fleet_.stdin_pump->close_worker_end();
  return Status::ok();
}

Result<RemoteHost> FleetStart::reach(const HostPlan& host, std::string_view first_message) {
  if (host.agent_command.empty()) {
    HVD_TRY_ASSIGN(UniqueFd socket, fleet_.joined->open_agent(host.name));
    return RemoteHost::adopt(host, std::move(socket), first_message);
  }
  return RemoteHost::connect(host, prepared_.plan.environment, first_message, signals_, limit_);
}

Status FleetStart::add_remote(const HostPlan& host, const std::vector<NewWorker>& workers) {
  HVD_TRY_ASSIGN(StartMessage message, common_message());
  message.is_elastic = true;
  message.environment = worker_environment(prepared_.plan, {}, false);
  for (const NewWorker& worker : workers) {
    message.ranks.push_back({.rank = worker.id, .variables = elastic_variables(worker)});
  }
  HVD_TRY_ASSIGN(const std::string frame, start_frame(message));
  Result<RemoteHost> remote = reach(host, frame);
  if (!remote) return remote.status();
  fleet_.remote.push_back(*std::move(remote));
  for (const NewWorker& worker : workers) {
    fleet_.ranks[static_cast<size_t>(worker.id)].remote = &fleet_.remote.back();
    if (worker.id == 0) fleet_.input_host = &fleet_.remote.back();
  }
  return Status::ok();
}

}  // namespace hvd::launch
