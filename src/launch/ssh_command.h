// ssh_command.h - the command that runs an agent on another host. Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/environment_list.h"
#include "launch/options.h"

namespace hvd::launch {

// ssh, what HOROVOD_SSH_COMMAND names instead, or the kubectl wrapper of an old MPIJob. Standard
// input and output become the connection to the agent.
struct RemoteShell {
  std::vector<std::string> words = {};  // before the host
  bool is_ssh = false;                  // and takes its options

  static Result<RemoteShell> choose(const Options& options, const EnvironmentList& environment,
                                    std::chrono::seconds connect_timeout);

  // argv that runs `executable --agent` on the host.
  std::vector<std::string> command_for(const std::string& host,
                                       const std::string& executable) const;
};

// In the launcher pod of a Kubernetes MPIJob, whose operator does not manage host keys.
bool is_mpijob_pod(const EnvironmentList& environment);

}  // namespace hvd::launch
