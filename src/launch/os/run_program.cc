#include "launch/os/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/fd.h"
#include "base/text.h"
#include "launch/os/command_path.h"

namespace hvd::launch {
namespace {

constexpr char kDefaultPath[] = "/usr/bin:/bin";

[[noreturn]] void become_program(const char* path, char* const* arguments, char* const* environment,
                                 int out, int err) {
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDONLY);
  if (::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
      ::dup2(err, STDERR_FILENO) >= 0) {
    ::execve(path, arguments, environment);
  }
  ::_exit(static_cast<int>(LauncherExit::kNotExecutable));
}

// True while there may be more.
bool read_some(UniqueFd& pipe, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) {
    pipe.reset();
    return false;
  }
  if (text.size() < kMaxProgramOutput) text.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

// False: the deadline came first.
bool read_all(UniqueFd& out_pipe, UniqueFd& err_pipe, ProgramOutput& output, Deadline deadline) {
  while (out_pipe.valid() || err_pipe.valid()) {
    std::array<pollfd, 2> polled{{{out_pipe.get(), POLLIN, 0}, {err_pipe.get(), POLLIN, 0}}};
    const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
    const int ready =
        ::poll(polled.data(), polled.size(),
               static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    if (ready == 0 && deadline.passed()) return false;
    if (polled[0].revents != 0) read_some(out_pipe, output.out);
    if (polled[1].revents != 0) read_some(err_pipe, output.err);
  }
  return true;
}

}  // namespace

Result<ProgramOutput> run_program(const std::vector<std::string>& command,
                                  const EnvironmentList& environment, Deadline deadline) {
  const CommandPath program =
      find_command(command.front(), get_variable(environment, "PATH").value_or(kDefaultPath));
  if (program.problem != CommandProblem::kNone) return precondition_error(program.reason);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  UniqueFd out_read(ends[0]);
  UniqueFd out_write(ends[1]);
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  UniqueFd err_read(ends[0]);
  UniqueFd err_write(ends[1]);
  std::vector<std::string> arguments = command;
  EnvironmentList variables = environment;
  const std::vector<char*> argument_pointers = exec_pointers(arguments);
  const std::vector<char*> variable_pointers = exec_pointers(variables);

  const pid_t pid = ::fork();
  if (pid < 0) return errno_status(concat("cannot start ", command.front()), errno);
  if (pid == 0) {
    become_program(program.path.c_str(), argument_pointers.data(), variable_pointers.data(),
                   out_write.get(), err_write.get());
  }
  ::setpgid(pid, pid);
  out_write.reset();
  err_write.reset();
  ProgramOutput output;
  const bool in_time = read_all(out_read, err_read, output, deadline);
  if (!in_time) ::kill(-pid, SIGKILL);
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return Status(StatusCode::kTimedOut, concat(command.front(), " did not end in time"));
  }
  output.status = ExitStatus::from_wait_status(wait_status);
  return output;
}

}  // namespace hvd::launch
