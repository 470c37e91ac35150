// host_sources.h - where the list of hosts comes from: options, a Kubernetes MPIJob, LSF, Slurm, or
// this machine alone. Reads files and runs the queries of LSF; bounded in time. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"
#include "launch/plan/hosts.h"
#include "launch/plan/jsrun_command.h"

namespace hvd::launch {

struct FoundHosts {
  std::vector<HostSlots> hosts;       // every host once
  std::vector<HostSlots> named = {};  // as they were named: a host may come twice
  std::string source;                 // "-H", "--hostfile hosts", "the Slurm allocation", ...
  std::optional<NodeShape> lsf = {};  // of the compute nodes, in an LSF job
  int32_t num_proc = 0;               // -np, or what the batch system says
};

// Fails if neither -np nor a batch system says how many workers there are. Reads no file.
Status check_num_proc(const Options& options, const EnvironmentList& environment);

// Of --host-discovery-script, run by a shell: 'host' or 'host:slots' lines.
inline constexpr std::chrono::seconds kDiscoveryTime{10};
Result<std::vector<HostSlots>> parse_discovered(std::string_view text, const Options& options);

// Whether an elastic job asks again which hosts there are: it may then begin with fewer than -np.
bool may_hosts_change(const Options& options);

// Of --hostfile, again.
Result<std::vector<HostSlots>> read_hosts_again(const Options& options);

// None, where hosts may change: there is no host yet.
Result<FoundHosts> find_hosts(const Options& options, const EnvironmentList& environment);

}  // namespace hvd::launch
