// fleet_start.h - turns a plan into a running fleet: first the connections to other hosts, then,
// when all of them are ready, everything at once. One thread; does not block.
#pragma once

#include <string>

#include "base/status.h"
#include "launch/job/fleet.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/signals.h"
#include "launch/plan/prepare.h"
#include "net/key.h"

namespace hvd::launch {

class FleetStart {
 public:
  // Makes the job's key and, for several hosts, its store; opens the files of the ranks.
  static Result<FleetStart> prepare(const Prepared& prepared, const std::string& program,
                                    const Signals& signals, const DescriptorLimit& limit);

  // Starts ssh to every other host. They do nothing before go().
  Status connect();
  // Starts the ranks of this host, then lets the others start theirs.
  Status go();

  Fleet& fleet() { return fleet_; }

 private:
  FleetStart(const Prepared& prepared, const std::string& program, const Signals& signals,
             const DescriptorLimit& limit, const net::Key& key)
      : prepared_(prepared), program_(program), signals_(signals), limit_(limit), key_(key) {}

  Status open_outputs();
  EnvironmentList full_environment(const WorkerPlan& worker) const;
  std::string key_text() const;
  Result<std::string> start_message(const HostPlan& host) const;
  Status start_local(const HostPlan& host);

  const Prepared& prepared_;
  const std::string& program_;
  const Signals& signals_;
  const DescriptorLimit& limit_;
  net::Key key_;
  std::string function_;  // of horovod.run, for other hosts
  Fleet fleet_;
};

}  // namespace hvd::launch
