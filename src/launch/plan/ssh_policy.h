// ssh_policy.h - asks ssh what the user's and the site's own configuration says about hosts, so
// that horovodrun never does less. Runs `ssh -G` once per host, which goes nowhere. Blocks until
// the deadline at most; hosts that it did not get to are taken for strict.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/os/environment_list.h"
#include "launch/plan/ssh_command.h"

namespace hvd::launch {

// In the order of `hosts`. All lenient if `shell` is not ssh, or does not check anyway.
std::vector<OwnPolicy> find_policies(const RemoteShell& shell,
                                     const std::vector<std::string>& hosts,
                                     const EnvironmentList& environment, Deadline deadline);

}  // namespace hvd::launch
