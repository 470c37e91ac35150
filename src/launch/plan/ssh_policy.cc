#include "launch/plan/ssh_policy.h"

#include "launch/os/run_program.h"

namespace hvd::launch {

std::vector<OwnPolicy> find_policies(const RemoteShell& shell,
                                     const std::vector<std::string>& hosts,
                                     const EnvironmentList& environment, Deadline deadline) {
  std::vector<OwnPolicy> policies(hosts.size(), OwnPolicy::kLenient);
  if (!shell.is_ssh || shell.host_keys == HostKeys::kUnchecked) return policies;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const auto output = run_program(shell.question_for(hosts[i]), environment, deadline);
    const bool has_answered = output && output->status.is_success();
    policies[i] = has_answered ? read_policy(output->out) : OwnPolicy::kStrict;
  }
  return policies;
}

}  // namespace hvd::launch
