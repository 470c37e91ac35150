#include "launch/ranks/local_workers.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/failure_note.h"
#include "base/text.h"
#include "elastic/message.h"
#include "launch/os/pipes.h"
#include "launch/os/process_state.h"
#include "launch/os/spawn.h"
#include "launch/ranks/key_descriptor.h"
#include "launch/ranks/termination.h"

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
  std::vector<std::string> words;
  std::vector<std::string> shell_words;
  UniqueFd null;
  int exec_reports;  // write end
};

// Packets, so that a message is read whole or not at all.
struct ChannelEnds {
  UniqueFd ours;
  UniqueFd theirs;
};

static Result<ChannelEnds> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno_status("cannot make the socket of an elastic worker", errno);
  }
  ::fcntl(ends[0], F_SETFL, ::fcntl(ends[0], F_GETFL) | O_NONBLOCK);
  return ChannelEnds{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<LocalWorkers::Process> LocalWorkers::start_rank(const LocalRank& rank,
                                                       const Common& common) {
  HVD_TRY_ASSIGN(Pipe out, pipe_to_read());
  HVD_TRY_ASSIGN(Pipe err, pipe_to_read());
  HVD_TRY_ASSIGN(const UniqueFd key, make_key_descriptor(common.request.key));
  HVD_TRY_ASSIGN(UniqueFd note, make_failure_note());
  ChannelEnds channel;
  EnvironmentList environment = rank.environment;
  std::vector<int> inherited = {key.get(), note.get()};
  if (common.request.is_elastic) {
    HVD_TRY_ASSIGN(channel, make_channel());
    inherited.push_back(channel.theirs.get());
    set_variable(environment, elastic::kChannelVariable, concat(channel.theirs.get()));
  }
  set_variable(environment, kKeyVariable, concat(key.get()));
  set_variable(environment, kFailureNoteVariable, failure_note_place(note.get()));
  const std::vector<char*> environment_pointers = exec_pointers(environment);
  std::vector<std::string> words = common.words;
  std::vector<std::string> shell_words = common.shell_words;
  const int stdin_fd = rank.rank == 0 ? common.request.first_stdin : common.null.get();
  HVD_TRY_ASSIGN(const pid_t pid,
                 spawn_process({.rank = rank.rank,
                                .path = common.request.program.c_str(),
                                .arguments = exec_pointers(words).data(),
                                .shell_arguments = exec_pointers(shell_words).data(),
                                .environment = environment_pointers.data(),
                                .stdin_fd = stdin_fd,
                                .stdout_fd = out.theirs.get(),
                                .stderr_fd = err.theirs.get(),
                                .inherited_fds = inherited,
                                .report_fd = common.exec_reports},
                               common.signals, common.limit));
  return Process{.rank = rank.rank,
                 .pid = pid,
                 .out = std::move(out.ours),
                 .err = std::move(err.ours),
                 .note = std::move(note),
                 .channel = std::move(channel.ours)};
}

void LocalWorkers::kill_all(const std::deque<Process>& processes) {
  for (const Process& process : processes) ::kill(-process.pid, SIGKILL);
  for (const Process& process : processes) {
    while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<LocalWorkers::Common> LocalWorkers::make_common(const LocalStart& request,
                                                       const Signals& signals,
                                                       const DescriptorLimit& limit,
                                                       int exec_reports) {
  Common common{.request = request,
                .signals = signals,
                .limit = limit,
                .words = request.command,
                .shell_words = request.command,
                .null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
                .exec_reports = exec_reports};
  common.shell_words.front() = request.program;
  common.shell_words.insert(common.shell_words.begin(), "/bin/sh");
  if (!common.null.valid()) return errno_status("cannot open /dev/null", errno);
  return common;
}

Result<LocalWorkers> LocalWorkers::start(const LocalStart& request, const Signals& signals,
                                         const DescriptorLimit& limit) {
  HVD_TRY_ASSIGN(Pipe exec_failures, pipe_to_read());
  HVD_TRY_ASSIGN(const Common common,
                 make_common(request, signals, limit, exec_failures.theirs.get()));
  std::deque<Process> processes;
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
  LocalStart kept = request;
  kept.first_stdin = -1;  // whoever gave it may close it
  return LocalWorkers(std::move(kept), std::move(processes), std::move(exec_failures.ours),
                      std::move(exec_failures.theirs), *std::move(guard));
}

Status LocalWorkers::add(const LocalRank& rank, const Signals& signals,
                         const DescriptorLimit& limit) {
  HVD_TRY_ASSIGN(const Common common, make_common(request_, signals, limit, exec_reports_.get()));
  HVD_TRY_ASSIGN(Process process, start_rank(rank, common));
  guard_.remember(process.pid);
  processes_.push_back(std::move(process));
  if (asked_to_leave_at_) {  // while this one was on its way
    send_message(rank.rank, elastic::encode(elastic::ToWorker(elastic::Leave{})));
  }
  return Status::ok();
}

void LocalWorkers::send_message(int32_t rank, std::string bytes) {
  for (Process& process : processes_) {
    if (process.rank != rank || process.has_ended || !process.channel.valid()) continue;
    process.messages.push_back(std::move(bytes));
    flush_messages(process);
    return;
  }
}

bool LocalWorkers::ask_to_leave(TimePoint now) {
  if (asked_to_leave_at_) return now - *asked_to_leave_at_ < Termination::kRepeatGap;
  asked_to_leave_at_ = now;
  const std::string leave = elastic::encode(elastic::ToWorker(elastic::Leave{}));
  for (const Process& process : processes_) send_message(process.rank, leave);
  return true;
}

void LocalWorkers::flush_messages(Process& process) {
  while (!process.messages.empty() && process.channel.valid()) {
    const std::string& next = process.messages.front();
    const ssize_t sent =
        ::send(process.channel.get(), next.data(), next.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) process.channel.reset();  // it is on its way out, which shows elsewhere
    process.messages.pop_front();
  }
}

// False: there is nothing to read now.
bool LocalWorkers::read_message(Process& process, WorkerEvents& events) {
  std::array<char, elastic::kMaxMessageBytes + 1> buffer;
  const ssize_t count = ::recv(process.channel.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  if (count <= 0) {
    process.channel.reset();
    return false;
  }
  events.on_message(process.rank, {buffer.data(), static_cast<size_t>(count)});
  return true;
}

void LocalWorkers::kill_one(int32_t rank) {
  for (Process& process : processes_) {
    if (process.rank != rank || process.has_ended) continue;
    process.was_asked = true;
    ::kill(-process.pid, SIGKILL);
  }
}

void LocalWorkers::report_started(WorkerEvents& events) const {
  for (const Process& process : processes_) events.on_started(process.rank, process.pid);
}

void LocalWorkers::watch(PollSet& polls, WorkerEvents& events,
                         const std::function<bool(OutputStream)>& may_read) {
  for (Process& process : processes_) {
    if (process.channel.valid()) {
      polls.watch(process.channel.get(), POLLIN,
                  [&process, &events] { read_message(process, events); });
      if (!process.messages.empty()) {
        polls.watch(process.channel.get(), POLLOUT, [&process] { flush_messages(process); });
      }
    }
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

std::optional<WorkerExit> LocalWorkers::take_end(pid_t pid, int wait_status, WorkerEvents& events) {
  if (pid == guard_.pid()) guard_.note_reaped();
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [pid](const Process& p) { return p.pid == pid && !p.has_ended; });
  if (found == processes_.end()) return std::nullopt;
  take_exec_failures();
  // What it said before it ended tells a planned leave from the end of the training.
  while (found->channel.valid() && read_message(*found, events)) {
  }
  found->has_ended = true;
  ExitStatus status = ExitStatus::from_wait_status(wait_status);
  status.exec_error = found->exec_error;
  const bool was_asked = found->was_asked || (was_asked_ && !found->was_dying_first);
  found->channel.reset();
  if (request_.is_elastic && !was_asked_) {
    // The job goes on without it, so what it left behind must not hold its cores and memory.
    if (!status.is_success()) ::kill(-pid, SIGKILL);
    found->group_is_ours = false;
    guard_.forget(pid);
  } else if (status.is_success() && !was_asked_) {
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
