// prepare.h - from the command line to the decision: configuration file, hosts, which of them are
// this machine, plan. Reads files, asks the resolver; bounded in time. One thread.
#pragma once

#include <string>

#include "base/status.h"
#include "launch/options/launch_settings.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"
#include "launch/plan/host_sources.h"
#include "launch/plan/plan.h"

namespace hvd::launch {

struct Prepared {
  Options options;  // with what the configuration file adds, and the number of workers
  LaunchSettings settings;
  FoundHosts found;
  Plan plan;
};

Result<Prepared> prepare_job(Options options, const EnvironmentList& environment);

// What prepare_job does first: the options of --config-file.
Status read_config_file(Options& options);

// The name of this machine; the path of this program.
Result<std::string> own_hostname();
Result<std::string> own_executable();

// The hosts with the mark of those that are this machine.
std::vector<LocatedHost> locate_hosts(const std::vector<HostSlots>& hosts,
                                      const std::string& hostname);

}  // namespace hvd::launch
