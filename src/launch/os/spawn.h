// spawn.h - starts one process: fork, wire up, exec. One thread (the kernel binds "die with the
// parent" to the thread that forked). Does not block.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/signals.h"

namespace hvd::launch {

struct SpawnRequest {
  int32_t rank;  // who, in reports
  const char* path;
  char* const* arguments;        // argv of the program
  char* const* shell_arguments;  // argv of /bin/sh for a script without a first line that names one
  char* const* environment;
  int stdin_fd, stdout_fd, stderr_fd;
  std::span<const int> inherited_fds;  // stay open under their numbers
  int report_fd;  // write end, close-on-exec: gets an ExecFailure if the program cannot run
};

struct ExecFailure {
  int32_t rank;
  int32_t error_number;
};

// The process leads its own process group, dies with us, and sees signals and limits as we found
// them.
Result<pid_t> spawn_process(const SpawnRequest& request, const Signals& signals,
                            const DescriptorLimit& limit);

// The next report in the pipe, if there is one; the read end must be non-blocking.
std::optional<ExecFailure> next_exec_failure(int report_fd);

}  // namespace hvd::launch
