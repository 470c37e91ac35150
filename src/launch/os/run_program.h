// run_program.h - runs a short program and takes what it prints. Blocks until the deadline at most;
// a program that is still there then is killed. One thread, before Signals are taken over.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launch/os/environment_list.h"
#include "launch/os/exit_status.h"

namespace hvd::launch {

struct ProgramOutput {
  ExitStatus status;
  std::string out;  // at most kMaxProgramOutput bytes; the rest is thrown away
  std::string err;
};
inline constexpr size_t kMaxProgramOutput = size_t{1} << 20;

// The program is searched in the PATH of `environment`. Fails if it is not there, or too slow.
Result<ProgramOutput> run_program(const std::vector<std::string>& command,
                                  const EnvironmentList& environment, Deadline deadline);

}  // namespace hvd::launch
