#include "launch/agent/agent.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "launch/agent/agent_session.h"

namespace hvd::launch {

int run_agent(const EnvironmentList& environment) {
  Result<Signals> signals = Signals::take_over();
  if (!signals) return static_cast<int>(LauncherExit::kLauncherFailed);
  // See run_job.cc: what the ranks leave behind becomes our child.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  AgentSession(*signals, environment).run();
  return static_cast<int>(LauncherExit::kSuccess);
}

}  // namespace hvd::launch
