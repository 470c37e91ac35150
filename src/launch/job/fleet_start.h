// fleet_start.h - turns a plan into a running fleet: first the connections to other hosts, then,
// when all of them are ready, everything at once. One thread; does not block.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/job/fleet.h"
#include "launch/link/agent_message.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/signals.h"
#include "launch/plan/prepare.h"
#include "net/keys/key.h"

namespace hvd::launch {

// A worker of an elastic job that is to be started.
struct NewWorker {
  int32_t id = 0;
  topology::Topology place;  // as far as it is known before its first init
};

class FleetStart {
 public:
  // Makes the job's key and, for several hosts, its store; opens the files of the ranks.
  static Result<FleetStart> prepare(const Prepared& prepared, const std::string& program,
                                    const Signals& signals, const DescriptorLimit& limit);

  // Starts ssh to every other host. They do nothing before go().
  Status connect();
  // Starts the ranks of this host, then lets the others start theirs.
  Status go();

  // Of an elastic job, at any time: starts workers on one host, through an agent of their own if it
  // is another one. May ask the resolver, for seconds at most.
  Status add_workers(const std::string& host, const std::vector<NewWorker>& workers);

  Fleet& fleet() { return fleet_; }

 private:
  FleetStart(const Prepared& prepared, const std::string& program, const Signals& signals,
             const DescriptorLimit& limit, const net::Key& key)
      : prepared_(prepared), program_(program), signals_(signals), limit_(limit), key_(key) {}

  Status open_outputs();
  Status open_output(int32_t rank, const std::string& host, const std::string& directory);
  Result<HostPlan> plan_host(const std::string& name) const;
  EnvironmentList elastic_variables(const NewWorker& worker) const;
  Status add_local(const std::vector<NewWorker>& workers);
  Result<RemoteHost> reach(const HostPlan& host, std::string_view first_message);
  Status add_remote(const HostPlan& host, const std::vector<NewWorker>& workers);
  EnvironmentList full_environment(const WorkerPlan& worker) const;
  std::string key_text() const;
  Result<StartMessage> common_message() const;
  static Result<std::string> start_frame(const StartMessage& message);
  Result<std::string> start_message(const HostPlan& host) const;
  Status start_local(const HostPlan& host);

  const Prepared& prepared_;
  const std::string& program_;
  const Signals& signals_;
  const DescriptorLimit& limit_;
  net::Key key_;
  std::string function_;              // of horovod.run, for other hosts
  std::deque<HostPlan> added_hosts_;  // of elastic workers; the connections point to them
  Fleet fleet_;
};

}  // namespace hvd::launch
