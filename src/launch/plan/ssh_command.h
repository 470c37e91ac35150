// ssh_command.h - the command that runs an agent on another host. Pure; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

// ssh, what HOROVOD_SSH_COMMAND names instead, or the kubectl wrapper of an old MPIJob. Standard
// input and output become the connection to the agent.
enum class HostKeys {
  kLearned,          // taken at first contact, and compared from then on
  kUnchecked,        // the user asked for that (--ssh-no-host-key-check)
  kUncheckedInPods,  // nobody manages them there, unless the configuration of ssh says otherwise
};

// What the user's or the site's own configuration of ssh says about a host (ssh -G).
enum class OwnPolicy {
  kStrict,   // only hosts that are known already: it is left alone
  kLenient,  // asks, which nobody could answer, or less
};

struct RemoteShell {
  std::vector<std::string> words = {};  // before the host
  bool is_ssh = false;                  // and takes its options
  HostKeys host_keys = HostKeys::kLearned;

  static Result<RemoteShell> choose(const Options& options, const EnvironmentList& environment,
                                    std::chrono::seconds connect_timeout);

  // argv that runs a command on the host. Never weaker than `policy`, except on the user's demand.
  std::vector<std::string> command_for(const std::string& host, const std::string& remote_command,
                                       OwnPolicy policy) const;
  // argv that prints ssh's configuration for the host, without going there. Of ssh only.
  std::vector<std::string> question_for(const std::string& host) const;
};

// What the other side's login shell is to run.
std::string agent_command(const std::string& executable);

// Of what `ssh -G` printed.
OwnPolicy read_policy(std::string_view configuration);

// In the launcher pod of a Kubernetes MPIJob, whose operator does not manage host keys.
bool is_mpijob_pod(const EnvironmentList& environment);

}  // namespace hvd::launch
