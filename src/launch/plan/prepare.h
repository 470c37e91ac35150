// prepare.h - from the command line to the decision: configuration file, hosts, which of them are
// this machine, plan. Reads files, asks the resolver; bounded in time. One thread.
#pragma once

#include <functional>
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

// An elastic job may be launched before there is any host, as in a cluster whose pods are still to
// start: `say_waiting` is told once, and hosts are waited for as long as for slots. Null: no host
// is an error. A script that fails at first, or a line that cannot be read, is a mistake and always
// one.
using SayWaiting = std::function<void(const std::string& text)>;
Result<Prepared> prepare_job(Options options, const EnvironmentList& environment,
                             const SayWaiting& say_waiting = {});

// What prepare_job does first: the options of --config-file.
Status read_config_file(Options& options);

// The name of this machine; the path of this program.
Result<std::string> own_hostname();
Result<std::string> own_executable();

// The hosts with the mark of those that are this machine.
std::vector<LocatedHost> locate_hosts(const std::vector<HostSlots>& hosts,
                                      const std::string& hostname);

}  // namespace hvd::launch
