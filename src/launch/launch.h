// launch.h - horovodrun from its arguments to its exit code: options, plan, spawn, supervise,
// report. One thread, once per process. Blocks until the job has ended.
#pragma once

#include <span>
#include <string>

#include "launch/os/environment_list.h"

namespace hvd::launch {

// `arguments` without the program's name. Returns what the process exits with (see help.cc).
int run_launcher(std::span<const std::string> arguments, const EnvironmentList& environment);

}  // namespace hvd::launch
