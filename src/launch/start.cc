#include "launch/start.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "launch/output_files.h"
#include "launch/spawn.h"

namespace hvd::launch {
namespace {

struct Pipe {
  UniqueFd read_end;  // non-blocking
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status("cannot make a pipe", errno);
  Pipe pipe{.read_end = UniqueFd(ends[0]), .write_end = UniqueFd(ends[1])};
  // Only our end: programs do not expect a non-blocking standard output.
  if (::fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK) != 0) {
    return errno_status("cannot prepare a pipe", errno);
  }
  return pipe;
}

// What all ranks share while they are being started.
struct Common {
  const StartRequest& request;
  const Signals& signals;
  const DescriptorLimit& limit;
  std::vector<char*> arguments;
  std::vector<char*> shell_arguments;
  UniqueFd null;
  UniqueFd exec_failures;  // write end
};

Result<Worker> start_worker(const WorkerPlan& plan, int stdin_fd, const Common& common) {
  OutputFiles files;
  if (!plan.output_directory.empty()) {
    HVD_TRY_ASSIGN(files, open_output_files(plan.output_directory));
  }
  HVD_TRY_ASSIGN(Pipe out, make_pipe());
  HVD_TRY_ASSIGN(Pipe err, make_pipe());
  EnvironmentList environment = plan.environment;
  const std::vector<char*> environment_pointers = exec_pointers(environment);
  const int32_t rank = plan.place.rank;
  const TimePoint started_at = Clock::steady().now();
  HVD_TRY_ASSIGN(const pid_t pid, spawn_worker({.rank = rank,
                                                .path = common.request.program.c_str(),
                                                .arguments = common.arguments.data(),
                                                .shell_arguments = common.shell_arguments.data(),
                                                .environment = environment_pointers.data(),
                                                .stdin_fd = stdin_fd,
                                                .stdout_fd = out.write_end.get(),
                                                .stderr_fd = err.write_end.get(),
                                                .report_fd = common.exec_failures.get()},
                                               common.signals, common.limit));
  const LineStamp stamp = common.request.stamp;
  return Worker{.rank = rank,
                .pid = pid,
                .started_at = started_at,
                .out = WorkerOutput({.rank = rank,
                                     .stream = "stdout",
                                     .pipe = std::move(out.read_end),
                                     .file = std::move(files.out),
                                     .stamp = stamp}),
                .err = WorkerOutput({.rank = rank,
                                     .stream = "stderr",
                                     .pipe = std::move(err.read_end),
                                     .file = std::move(files.err),
                                     .stamp = stamp}),
                .tail = {},
                .status = {},
                .ended_at = {}};
}

}  // namespace

void kill_job(const Job& job) {
  for (const Worker& worker : job.workers) ::kill(-worker.pid, SIGKILL);
  for (const Worker& worker : job.workers) {
    while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<Job> start_job(const StartRequest& request, const Signals& signals,
                      const DescriptorLimit& limit) {
  std::vector<std::string> arguments = request.command;
  std::vector<std::string> shell_arguments = request.command;
  shell_arguments.front() = request.program;
  shell_arguments.insert(shell_arguments.begin(), "/bin/sh");

  Job job;
  HVD_TRY_ASSIGN(Pipe exec_failures, make_pipe());
  job.exec_failures = std::move(exec_failures.read_end);
  const Common common{.request = request,
                      .signals = signals,
                      .limit = limit,
                      .arguments = exec_pointers(arguments),
                      .shell_arguments = exec_pointers(shell_arguments),
                      .null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
                      .exec_failures = std::move(exec_failures.write_end)};
  if (!common.null.valid()) return errno_status("cannot open /dev/null", errno);
  int first_stdin = STDIN_FILENO;
  if (::isatty(STDIN_FILENO) == 1) {
    HVD_TRY_ASSIGN(job.stdin_pump, StdinPump::create(STDIN_FILENO));
    first_stdin = job.stdin_pump->worker_end();
  }

  job.workers.reserve(request.plan.workers.size());
  for (const WorkerPlan& plan : request.plan.workers) {
    const int stdin_fd = plan.place.rank == 0 ? first_stdin : common.null.get();
    Result<Worker> worker = start_worker(plan, stdin_fd, common);
    if (!worker.is_ok()) {
      kill_job(job);
      return worker.status();
    }
    job.workers.push_back(*std::move(worker));
  }
  if (job.stdin_pump) job.stdin_pump->close_worker_end();
  return job;
}

}  // namespace hvd::launch
