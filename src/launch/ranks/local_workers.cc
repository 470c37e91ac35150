#include "launch/ranks/local_workers.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/failure_note.h"
#include "base/text.h"
#include "launch/os/pipes.h"
#include "launch/os/process_state.h"
#include "launch/os/spawn.h"
#include "launch/ranks/key_descriptor.h"

namespace hvd::launch {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;  // what a pipe holds by default
// Somebody who writes without end must not keep us in the last look.
constexpr int kMaxDrainReads = 32;

}  // namespace

// What all ranks share while they are being started.
struct LocalWorkers::Common {
  const LocalStart& request;
  const Signals& signals;
  const DescriptorLimit& limit;
  std::vector<char*> arguments;
  std::vector<char*> shell_arguments;
  UniqueFd null;
  UniqueFd exec_failures;  // write end
};

Result<LocalWorkers::Process> LocalWorkers::start_rank(const LocalRank& rank,
                                                       const Common& common) {
  HVD_TRY_ASSIGN(Pipe out, pipe_to_read());
  HVD_TRY_ASSIGN(Pipe err, pipe_to_read());
  HVD_TRY_ASSIGN(const UniqueFd key, make_key_descriptor(common.request.key));
  HVD_TRY_ASSIGN(UniqueFd note, make_failure_note());
  const std::array<int, 2> inherited = {key.get(), note.get()};
  EnvironmentList environment = rank.environment;
  set_variable(environment, kKeyVariable, concat(key.get()));
  set_variable(environment, kFailureNoteVariable, failure_note_place(note.get()));
  const std::vector<char*> environment_pointers = exec_pointers(environment);
  const int stdin_fd = rank.rank == 0 ? common.request.first_stdin : common.null.get();
  HVD_TRY_ASSIGN(const pid_t pid, spawn_process({.rank = rank.rank,
                                                 .path = common.request.program.c_str(),
                                                 .arguments = common.arguments.data(),
                                                 .shell_arguments = common.shell_arguments.data(),
                                                 .environment = environment_pointers.data(),
                                                 .stdin_fd = stdin_fd,
                                                 .stdout_fd = out.theirs.get(),
                                                 .stderr_fd = err.theirs.get(),
                                                 .inherited_fds = inherited,
                                                 .report_fd = common.exec_failures.get()},
                                                common.signals, common.limit));
  return Process{.rank = rank.rank,
                 .pid = pid,
                 .out = std::move(out.ours),
                 .err = std::move(err.ours),
                 .note = std::move(note)};
}

void LocalWorkers::kill_all(std::span<const Process> processes) {
  for (const Process& process : processes) ::kill(-process.pid, SIGKILL);
  for (const Process& process : processes) {
    while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<LocalWorkers> LocalWorkers::start(const LocalStart& request, const Signals& signals,
                                         const DescriptorLimit& limit) {
  std::vector<std::string> arguments = request.command;
  std::vector<std::string> shell_arguments = request.command;
  shell_arguments.front() = request.program;
  shell_arguments.insert(shell_arguments.begin(), "/bin/sh");
  HVD_TRY_ASSIGN(Pipe exec_failures, pipe_to_read());
  const Common common{.request = request,
                      .signals = signals,
                      .limit = limit,
                      .arguments = exec_pointers(arguments),
                      .shell_arguments = exec_pointers(shell_arguments),
                      .null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
                      .exec_failures = std::move(exec_failures.theirs)};
  if (!common.null.valid()) return errno_status("cannot open /dev/null", errno);

  std::vector<Process> processes;
  std::vector<pid_t> groups;
  for (const LocalRank& rank : request.ranks) {
    Result<Process> process = start_rank(rank, common);
    if (!process) {
      kill_all(processes);
      return process.status();
    }
    groups.push_back(process->pid);
    processes.push_back(*std::move(process));
  }
  Result<Guard> guard = Guard::watch(groups);
  if (!guard) {
    kill_all(processes);
    return guard.status();
  }
  return LocalWorkers(std::move(processes), std::move(exec_failures.ours), *std::move(guard));
}

void LocalWorkers::report_started(WorkerEvents& events) const {
  for (const Process& process : processes_) events.on_started(process.rank, process.pid);
}

void LocalWorkers::watch(PollSet& polls, WorkerEvents& events,
                         const std::function<bool(OutputStream)>& may_read) {
  for (Process& process : processes_) {
    for (OutputStream stream : {OutputStream::kOut, OutputStream::kErr}) {
      const UniqueFd& pipe = stream == OutputStream::kOut ? process.out : process.err;
      if (!pipe.valid() || !may_read(stream)) continue;
      polls.watch(pipe.get(), POLLIN,
                  [&process, stream, &events] { read_once(process, stream, events); });
    }
  }
}

// True if there may be more to read at once.
bool LocalWorkers::read_once(Process& process, OutputStream stream, WorkerEvents& events) {
  static std::array<char, kReadBytes> buffer;  // this thread alone
  UniqueFd& pipe = stream == OutputStream::kOut ? process.out : process.err;
  const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
  if (count > 0) {
    events.on_output(process.rank, stream, {buffer.data(), static_cast<size_t>(count)});
    return true;
  }
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  pipe.reset();
  events.on_output_end(process.rank, stream);
  return false;
}

void LocalWorkers::take_exec_failures() {
  while (const auto failure = next_exec_failure(exec_failures_.get())) {
    for (Process& process : processes_) {
      if (process.rank == failure->rank) process.exec_error = failure->error_number;
    }
  }
}

std::optional<WorkerExit> LocalWorkers::take_end(pid_t pid, int wait_status) {
  if (pid == guard_.pid()) guard_.note_reaped();
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [pid](const Process& p) { return p.pid == pid && !p.has_ended; });
  if (found == processes_.end()) return std::nullopt;
  take_exec_failures();
  found->has_ended = true;
  ExitStatus status = ExitStatus::from_wait_status(wait_status);
  status.exec_error = found->exec_error;
  const bool was_asked = was_asked_ && !found->was_dying_first;
  if (status.is_success() && !was_asked_) {
    // What a rank that ended well leaves running, it leaves on purpose.
    found->group_is_ours = false;
    guard_.forget(pid);
  }
  return WorkerExit{.rank = found->rank,
                    .status = status,
                    .was_asked = was_asked,
                    .note = was_asked ? found->note_before : read_failure_note(found->note.get())};
}

void LocalWorkers::note_asked() {
  if (was_asked_) return;
  was_asked_ = true;
  for (Process& process : processes_) {
    if (process.has_ended) continue;
    process.was_dying_first = is_dying(process.pid);
    // What it writes from now on may be the work of those who were asked with it.
    process.note_before = read_failure_note(process.note.get());
  }
}

void LocalWorkers::signal_groups(std::initializer_list<int> numbers) const {
  for (const Process& process : processes_) {
    if (!process.group_is_ours) continue;
    for (int number : numbers) ::kill(-process.pid, number);
  }
}

void LocalWorkers::forget_empty_groups() {
  if (!was_asked_) return;
  for (Process& process : processes_) {
    // Anything but success: nobody is left whom we could signal.
    if (process.group_is_ours && process.has_ended && ::kill(-process.pid, 0) != 0) {
      process.group_is_ours = false;
      guard_.forget(process.pid);
    }
  }
}

bool LocalWorkers::is_everybody_gone() const {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
    return process.has_ended && !process.group_is_ours;
  });
}

bool LocalWorkers::is_output_closed() const {
  return std::none_of(processes_.begin(), processes_.end(), [](const Process& process) {
    return process.out.valid() || process.err.valid();
  });
}

void LocalWorkers::close_output(WorkerEvents& events) {
  for (Process& process : processes_) {
    for (OutputStream stream : {OutputStream::kOut, OutputStream::kErr}) {
      UniqueFd& pipe = stream == OutputStream::kOut ? process.out : process.err;
      for (int reads = 0; pipe.valid() && reads < kMaxDrainReads; ++reads) {
        if (!read_once(process, stream, events)) break;
      }
      if (!pipe.valid()) continue;
      pipe.reset();
      events.on_output_end(process.rank, stream);
    }
  }
}

}  // namespace hvd::launch
