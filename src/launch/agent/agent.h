// agent.h - `horovodrun --agent`: starts the ranks of one host for a launcher on another one.
// Standard input and output are the connection (agent_message.h). When it ends, so do the ranks:
// the launcher is gone, or has lost us. One thread; blocks in poll() only.
#pragma once

#include "launch/os/environment_list.h"

namespace hvd::launch {

// Returns what the process exits with.
int run_agent(const EnvironmentList& environment);

}  // namespace hvd::launch
