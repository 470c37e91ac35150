#include "launch/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "launch/process_state.h"
#include "launch/spawn.h"

namespace hvd::launch {
namespace {

// A process that a worker left behind may hold its pipes for ever; what the workers themselves
// wrote is in the pipes already.
constexpr Nanoseconds kDrainTime = std::chrono::milliseconds(200);

TimePoint now() { return Clock::steady().now(); }

// Rounded up: waking too early would spin until the deadline.
int poll_timeout(Deadline deadline) {
  if (deadline.is_never()) return -1;
  const Nanoseconds left = deadline.remaining(std::chrono::hours(24));
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace

Supervisor::Supervisor(Job& job, Guard& guard, Terminal& terminal, const Signals& signals,
                       Nanoseconds termination_grace)
    : job_(job),
      guard_(guard),
      terminal_(terminal),
      signals_(signals),
      termination_(termination_grace) {}

JobEnd Supervisor::run() {
  while (!is_everybody_gone() && termination_.step() != TerminationStep::kGivenUp) {
    wait_for_events(termination_.deadline());
    carry_out(termination_.on_time(now()));
  }
  drain_output();
  return {.signal = termination_.signal(), .first_failed = settled_first_failure()};
}

void Supervisor::watch(int fd, short events, std::function<void()> handler) {
  if (fd < 0) return;
  polled_.push_back({.fd = fd, .events = events, .revents = 0});
  handlers_.push_back(std::move(handler));
}

void Supervisor::watch_output(Worker& worker) {
  // A reader that is slower than the workers makes them wait, as a pipe between them would.
  if (worker.out.is_open() && terminal_.out().pending_bytes() < Terminal::kHighWaterBytes) {
    watch(worker.out.poll_fd(), POLLIN,
          [this, &worker] { worker.out.read_some(terminal_.out(), worker.tail); });
  }
  if (worker.err.is_open() && terminal_.err().pending_bytes() < Terminal::kHighWaterBytes) {
    watch(worker.err.poll_fd(), POLLIN,
          [this, &worker] { worker.err.read_some(terminal_.err(), worker.tail); });
  }
}

void Supervisor::wait_for_events(Deadline deadline) {
  polled_.clear();
  handlers_.clear();
  for (Worker& worker : job_.workers) watch_output(worker);
  for (Console* console : {&terminal_.out(), &terminal_.err()}) {
    if (console->has_pending()) watch(console->poll_fd(), POLLOUT, [] {});  // flushed below
  }
  if (job_.stdin_pump) {
    watch(job_.stdin_pump->readable_fd(), POLLIN, [this] { job_.stdin_pump->read_some(); });
    watch(job_.stdin_pump->writable_fd(), POLLOUT, [this] { job_.stdin_pump->write_some(); });
  }
  // Last: output that a rank wrote before it ended is taken before its end is.
  watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });

  const int ready = ::poll(polled_.data(), polled_.size(), poll_timeout(deadline));
  for (size_t i = 0; ready > 0 && i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) handlers_[i]();
  }
  terminal_.flush_some();
}

void Supervisor::take_signals() {
  while (const auto event = signals_.next()) {
    switch (event->number) {
      case SIGCHLD:
        reap(event->sender);
        break;
      case SIGTSTP:
        stop_with_workers();
        break;
      case SIGCONT:
        signal_groups({SIGCONT});
        break;
      default:
        carry_out(termination_.on_signal(event->number, now()));
        break;
    }
  }
}

void Supervisor::stop_with_workers() {
  signal_groups({SIGSTOP});
  ::kill(::getpid(), SIGSTOP);  // SIGCONT comes back as an event
}

void Supervisor::signal_groups(std::initializer_list<int> numbers) {
  for (const Worker& worker : job_.workers) {
    if (!worker.group_is_ours) continue;
    for (int number : numbers) ::kill(-worker.pid, number);
  }
}

void Supervisor::carry_out(TerminationAction action) {
  switch (action) {
    case TerminationAction::kSendTerminate:
      // A stopped process sees SIGTERM only when it goes on.
      signal_groups({SIGTERM, SIGCONT});
      break;
    case TerminationAction::kSendKill:
      signal_groups({SIGKILL});
      break;
    case TerminationAction::kNone:
    case TerminationAction::kGiveUp:
      break;
  }
}

Worker* Supervisor::find_worker(pid_t pid) {
  const auto found = std::find_if(job_.workers.begin(), job_.workers.end(),
                                  [pid](const Worker& worker) { return worker.pid == pid; });
  return found == job_.workers.end() ? nullptr : &*found;
}

void Supervisor::take_exec_failures() {
  while (const auto failure = next_exec_failure(job_.exec_failures.get())) {
    job_.workers[static_cast<size_t>(failure->rank)].exec_error = failure->error_number;
  }
}

void Supervisor::reap(std::optional<pid_t> announced) {
  std::vector<RankExit> exits;
  std::optional<int32_t> announced_rank;
  const TimePoint seen_at = now();
  int wait_status = 0;
  // Also takes orphans of the workers, which the kernel hands to us (see launch.cc).
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (pid == guard_.pid()) guard_.note_reaped();
    Worker* worker = find_worker(pid);
    if (worker == nullptr) continue;
    take_exec_failures();
    ExitStatus status = ExitStatus::from_wait_status(wait_status);
    status.exec_error = worker->exec_error;
    worker->status = status;
    worker->fate = fate_of(status, termination_.step());
    worker->ended_at = seen_at;
    if (pid == announced) announced_rank = worker->rank;
    exits.push_back({worker->rank, status});
    if (worker->fate == RankFate::kFinished) {
      // What a rank that ended well leaves running, it leaves on purpose.
      worker->group_is_ours = false;
      guard_.forget(worker->pid);
    }
  }
  note_failure(exits, announced_rank);
  forget_empty_groups();
}

void Supervisor::note_failure(std::span<const RankExit> exits, std::optional<int32_t> announced) {
  if (termination_.has_begun()) return;
  const auto first = first_failure(exits, announced);
  if (!first) return;
  first_failed_ = first;
  for (Worker& worker : job_.workers) {
    worker.was_dying_first = !worker.status && is_dying(worker.pid);
  }
  carry_out(termination_.on_failure(now()));
}

std::optional<int32_t> Supervisor::settled_first_failure() const {
  if (!first_failed_) return std::nullopt;
  std::vector<RankExit> dying_first;
  for (const Worker& worker : job_.workers) {
    if (worker.was_dying_first && worker.status)
      dying_first.push_back({worker.rank, *worker.status});
  }
  const Worker& seen = job_.workers[static_cast<size_t>(*first_failed_)];
  return settle_first_failure({seen.rank, *seen.status}, dying_first).rank;
}

void Supervisor::forget_empty_groups() {
  if (!termination_.has_begun()) return;
  for (Worker& worker : job_.workers) {
    // Anything but success: nobody is left whom we could signal.
    if (worker.group_is_ours && worker.status && ::kill(-worker.pid, 0) != 0) {
      worker.group_is_ours = false;
      guard_.forget(worker.pid);
    }
  }
}

bool Supervisor::is_everybody_gone() const {
  return std::all_of(job_.workers.begin(), job_.workers.end(), [](const Worker& worker) {
    return worker.status.has_value() && !worker.group_is_ours;
  });
}

bool Supervisor::is_output_closed() const {
  return std::none_of(job_.workers.begin(), job_.workers.end(), [](const Worker& worker) {
    return worker.out.is_open() || worker.err.is_open();
  });
}

void Supervisor::drain_output() {
  const Deadline deadline = Deadline::after(kDrainTime);
  while (!is_output_closed() && !deadline.passed()) wait_for_events(deadline);
  for (Worker& worker : job_.workers) {
    worker.out.drain_and_close(terminal_.out(), worker.tail);
    worker.err.drain_and_close(terminal_.err(), worker.tail);
  }
}

}  // namespace hvd::launch
