#include "launch/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>

#include "base/text.h"
#include "base/version.h"
#include "launch/command_path.h"
#include "launch/help.h"
#include "launch/start.h"

namespace hvd::launch {
namespace {

// After a signal nobody waits long for a reader that does not read.
constexpr Nanoseconds kFlushTimeAfterSignal = std::chrono::seconds(1);
constexpr size_t kReportedLines = 10;

int code(LauncherExit exit) { return static_cast<int>(exit); }

// A descriptor from 0 to 2 that is closed would be given to the next pipe, and a worker's standard
// output would then be something else's.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);  // takes the lowest: fd
    }
  }
}

Result<std::string> own_hostname() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return errno_status("cannot read the host name", errno);
  }
  return std::string(name.data());
}

// 128 random bits: no other job, of whatever user, has the same name.
Result<std::string> new_job_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_status("cannot make a random job id", errno);
  }
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Until all is written, a signal says stop, or the deadline. Without a deadline only a reader that
// is there but does not read can hold us, as it holds every program.
void flush_all(Terminal& terminal, const Signals* signals, Deadline deadline) {
  terminal.flush_some();
  while (terminal.has_pending() && !deadline.passed()) {
    std::vector<pollfd> polled;
    for (Console* console : {&terminal.out(), &terminal.err()}) {
      if (console->has_pending()) polled.push_back({console->poll_fd(), POLLOUT, 0});
    }
    if (signals != nullptr) polled.push_back({signals->poll_fd(), POLLIN, 0});
    const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
    ::poll(polled.data(), polled.size(),
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    terminal.flush_some();
    while (signals != nullptr) {
      const auto event = signals->next();
      if (!event) break;
      if (event->number == SIGINT || event->number == SIGTERM || event->number == SIGHUP) return;
    }
  }
}

int fail(Terminal& terminal, LauncherExit exit, std::string_view reason) {
  terminal.err().append(concat("horovodrun: ", reason, "\n"));
  if (exit == LauncherExit::kUsage) {
    terminal.err().append("horovodrun: 'horovodrun --help' shows the options\n");
  }
  flush_all(terminal, nullptr, Deadline::never());
  return code(exit);
}

int fail(Terminal& terminal, const Status& status) {
  const bool is_mistake = status.code() == StatusCode::kInvalidArgument;
  return fail(terminal, is_mistake ? LauncherExit::kUsage : LauncherExit::kLauncherFailed,
              status.message());
}

Result<Plan> plan_job(const Options& options, const EnvironmentList& environment,
                      const LaunchSettings& settings) {
  HVD_TRY_ASSIGN(std::string hostname, own_hostname());
  HVD_TRY_ASSIGN(std::string job_id, new_job_id());
  return make_plan(options, {.hostname = std::move(hostname),
                             .job_id = std::move(job_id),
                             .environment = environment,
                             .settings = settings});
}

void say_started(const Job& job, const Plan& plan, const std::string& program, Terminal& terminal) {
  const topology::Topology& place = plan.workers.front().place;
  terminal.err().append(
      concat("horovodrun: ", place.size, " ranks of ", program, " on host ", place.hostname, "\n"));
  for (const Worker& worker : job.workers) {
    terminal.err().append(concat("horovodrun: rank ", worker.rank, " is pid ", worker.pid, "\n"));
  }
}

void say_ended(const Job& job, Terminal& terminal) {
  terminal.err().start_line();
  for (const Worker& worker : job.workers) {
    if (!worker.status) continue;
    terminal.err().append(concat("horovodrun: rank ", worker.rank, " ", describe(*worker.status),
                                 " after ", describe_span(worker.ended_at - worker.started_at),
                                 "\n"));
  }
}

void say_lost_files(const Job& job, Terminal& terminal) {
  for (const Worker& worker : job.workers) {
    for (const WorkerOutput* output : {&worker.out, &worker.err}) {
      if (output->file_error() == 0) continue;
      const std::string what = concat("the output file of rank ", worker.rank, " is incomplete");
      terminal.err().start_line();
      terminal.err().append(
          concat("horovodrun: ", errno_status(what, output->file_error()).message(), "\n"));
    }
  }
}

int report_end(const Job& job, const JobEnd& end, const Plan& plan, Terminal& terminal) {
  std::vector<RankFate> fates;
  for (const Worker& worker : job.workers) {
    if (worker.rank != end.first_failed) fates.push_back(worker.fate);
  }
  if (end.first_failed) {
    const Worker& failed = job.workers[static_cast<size_t>(*end.first_failed)];
    terminal.err().start_line();
    terminal.err().append(
        failure_report({.rank = failed.rank,
                        .pid = failed.pid,
                        .host = plan.workers[static_cast<size_t>(failed.rank)].place.hostname,
                        .status = *failed.status,
                        .after = failed.ended_at - failed.started_at,
                        .last_lines = failed.tail.last_lines(kReportedLines)},
                       fates));
    return exit_code_of(*failed.status);
  }
  if (end.signal) {
    const Nanoseconds after = Clock::steady().now() - job.workers.front().started_at;
    terminal.err().start_line();
    terminal.err().append(signal_report(*end.signal, after, fates));
    return 128 + *end.signal;
  }
  return code(LauncherExit::kSuccess);
}

Result<int> run_job(const Options& options, const Plan& plan, const std::string& program,
                    const LaunchSettings& settings, Terminal& terminal) {
  HVD_TRY_ASSIGN(const Signals signals, Signals::take_over());
  HVD_TRY_ASSIGN(const DescriptorLimit limit, DescriptorLimit::make_room(options.num_proc));
  // What a worker leaves behind becomes our child when the worker ends: so we see when a process
  // group is empty instead of asking again and again.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);

  HVD_TRY_ASSIGN(
      Job job, start_job({.plan = plan,
                          .program = program,
                          .command = options.command,
                          .stamp = options.prefix_timestamp ? LineStamp::kTime : LineStamp::kNone},
                         signals, limit));
  std::vector<pid_t> groups;
  for (const Worker& worker : job.workers) groups.push_back(worker.pid);
  Result<Guard> guard = Guard::watch(groups);
  if (!guard.is_ok()) {
    kill_job(job);
    return guard.status();
  }
  if (options.verbose) say_started(job, plan, program, terminal);

  const JobEnd end = Supervisor(job, *guard, terminal, signals, settings.termination_grace).run();

  if (options.verbose) say_ended(job, terminal);
  say_lost_files(job, terminal);
  const int exit_code = report_end(job, end, plan, terminal);
  flush_all(terminal, &signals,
            end.signal ? Deadline::after(kFlushTimeAfterSignal) : Deadline::never());
  return exit_code;
}

}  // namespace

int run_launcher(std::span<const std::string> arguments, const EnvironmentList& environment) {
  open_standard_descriptors();
  Terminal terminal(STDOUT_FILENO, STDERR_FILENO);
  const Result<Options> options = parse_options(arguments);
  if (!options.is_ok()) return fail(terminal, options.status());
  if (options.value().request != Request::kRun) {
    const bool is_help = options.value().request == Request::kHelp;
    terminal.out().append(is_help ? help_text() : concat(version_text(), "\n"));
    flush_all(terminal, nullptr, Deadline::never());
    return code(LauncherExit::kSuccess);
  }
  const Result<LaunchSettings> settings = read_launch_settings(environment);
  if (!settings.is_ok()) return fail(terminal, settings.status());
  const Result<Plan> plan = plan_job(options.value(), environment, settings.value());
  if (!plan.is_ok()) return fail(terminal, plan.status());

  const CommandPath program = find_command(
      options.value().command.front(), get_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  if (program.problem == CommandProblem::kNotFound) {
    return fail(terminal, LauncherExit::kNotFound, program.reason);
  }
  if (program.problem == CommandProblem::kNotExecutable) {
    return fail(terminal, LauncherExit::kNotExecutable, program.reason);
  }
  const Result<int> exit_code =
      run_job(options.value(), plan.value(), program.path, settings.value(), terminal);
  return exit_code.is_ok() ? exit_code.value() : fail(terminal, exit_code.status());
}

}  // namespace hvd::launch
