#include "launch/os/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "launch/os/exit_status.h"

namespace hvd::launch {
namespace {

// In the child; only calls that are safe after fork.
[[noreturn]] void become_process(const SpawnRequest& request, const Signals& signals,
                                 const DescriptorLimit& limit, pid_t launcher) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The launcher may have died before the line above: then nobody will send that signal.
  if (::getppid() != launcher) ::_exit(static_cast<int>(LauncherExit::kLauncherFailed));

  int error_number = 0;
  if (::dup2(request.stdin_fd, STDIN_FILENO) < 0 || ::dup2(request.stdout_fd, STDOUT_FILENO) < 0 ||
      ::dup2(request.stderr_fd, STDERR_FILENO) < 0 ||
      std::any_of(request.inherited_fds.begin(), request.inherited_fds.end(),
                  [](int fd) { return ::fcntl(fd, F_SETFD, 0) < 0; })) {
    error_number = errno;
  } else {
    limit.restore();
    signals.restore();
    ::execve(request.path, request.arguments, request.environment);
    if (errno == ENOEXEC) ::execve("/bin/sh", request.shell_arguments, request.environment);
    error_number = errno;
  }
  const ExecFailure failure{.rank = request.rank, .error_number = error_number};
  // Smaller than PIPE_BUF, so written whole or not at all; without it the exit code still tells.
  [[maybe_unused]] const ssize_t written = ::write(request.report_fd, &failure, sizeof failure);
  ::_exit(exit_code_of_exec_error(error_number));
}

}  // namespace

Result<pid_t> spawn_process(const SpawnRequest& request, const Signals& signals,
                            const DescriptorLimit& limit) {
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_status(concat("cannot start ", request.path), errno);
  if (pid == 0) become_process(request, signals, limit, launcher);
  // Here too: whoever comes first. The group must exist when the first signal is sent to it.
  ::setpgid(pid, pid);
  return pid;
}

std::optional<ExecFailure> next_exec_failure(int report_fd) {
  ExecFailure failure{};
  const ssize_t count = ::read(report_fd, &failure, sizeof failure);
  if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
  return failure;
}

}  // namespace hvd::launch
