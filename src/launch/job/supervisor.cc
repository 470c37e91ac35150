#include "launch/job/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "launch/os/now.h"

namespace hvd::launch {
namespace {

// A process that a worker left behind may hold its pipes for ever; what the workers themselves
// wrote is in the pipes already.
constexpr Nanoseconds kDrainTime = std::chrono::milliseconds(200);
// An agent speaks every second. While the job runs, a host that is merely overloaded has time;
// when it ends, nobody waits for one that has gone.
constexpr Nanoseconds kSilenceWhileRunning = std::chrono::seconds(10);
constexpr Nanoseconds kSilenceWhileEnding = std::chrono::seconds(3);
// A host that was silent for longer than this when the first rank failed had gone before.
constexpr Nanoseconds kGoneBefore = std::chrono::milliseconds(1500);
// What a rank that has shut down needs to end; one that goes on instead costs the others this time.
constexpr Nanoseconds kLeavingTime = std::chrono::seconds(2);

}  // namespace

Supervisor::Supervisor(Fleet& fleet, Terminal& terminal, const Signals& signals,
                       Nanoseconds termination_grace, ElasticJob* elastic)
    : fleet_(fleet),
      terminal_(terminal),
      signals_(signals),
      elastic_(elastic),
      termination_(termination_grace),
      is_loss_noted_(fleet.remote.size()) {}

JobEnd Supervisor::run() {
  if (fleet_.local) fleet_.local->report_started(*this);
  if (elastic_ != nullptr) elastic_->begin();
  const auto is_done = [this] {
    const bool goes_on = elastic_ != nullptr && !elastic_->end() && !termination_.has_begun();
    return termination_.step() == TerminationStep::kGivenUp || (is_everybody_gone() && !goes_on);
  };
  while (!is_done()) {
    turn(next_deadline());
    const Nanoseconds silence =
        termination_.has_begun() ? kSilenceWhileEnding : kSilenceWhileRunning;
    for (RemoteHost& host : fleet_.remote) host.on_time(now(), silence);
    if (fleet_.joined) fleet_.joined->on_time(now());
    note_exits();
    note_lost_hosts();
    note_elastic();
    carry_out(termination_.on_time(now()));
  }
  drain_output();
  return {
      .signal = termination_.signal(),
      .culprit = first_failed_ ? std::optional(find_culprit(*first_failed_, ends())) : std::nullopt,
      .lost_host = lost_host_,
      .elastic = elastic_ != nullptr && !termination_.signal() ? elastic_->end() : std::nullopt};
}

void Supervisor::watch_output() {
  // A reader that is slower than the workers makes them wait, as a pipe between them would.
  const auto may_read = [this](OutputStream stream) {
    Console& console = stream == OutputStream::kOut ? terminal_.out() : terminal_.err();
    return console.pending_bytes() < Terminal::kHighWaterBytes;
  };
  if (fleet_.local) fleet_.local->watch(polls_, *this, may_read);
  // The end of a remote rank comes behind its output: when the job is ending, that must get
  // through.
  const bool may_read_all =
      termination_.has_begun() || (may_read(OutputStream::kOut) && may_read(OutputStream::kErr));
  for (RemoteHost& host : fleet_.remote) host.watch(polls_, *this, may_read_all);
}

void Supervisor::watch_input() {
  if (fleet_.stdin_pump) {
    StdinPump& pump = *fleet_.stdin_pump;
    polls_.watch(pump.readable_fd(), POLLIN, [&pump] { pump.read_some(); });
    polls_.watch(pump.writable_fd(), POLLOUT, [&pump] { pump.write_some(); });
  }
  if (fleet_.input_host == nullptr || has_input_ended_ || fleet_.input_host->input_room() == 0) {
    return;
  }
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (is_terminal && ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return;  // it would stop us
  polls_.watch(STDIN_FILENO, POLLIN, [this] { forward_input(); });
}

void Supervisor::forward_input() {
  std::array<char, 16384> buffer;
  const size_t room = std::min(buffer.size(), fleet_.input_host->input_room());
  const ssize_t count = ::read(STDIN_FILENO, buffer.data(), room);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  has_input_ended_ = count <= 0;
  fleet_.input_host->send_input({buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))});
}

void Supervisor::turn(Deadline deadline) {
  polls_.clear();
  watch_output();
  for (Console* console : {&terminal_.out(), &terminal_.err()}) {
    if (console->has_pending()) polls_.watch(console->poll_fd(), POLLOUT, [] {});  // flushed below
  }
  watch_input();
  if (fleet_.store) fleet_.store->watch(polls_);
  if (fleet_.joined) fleet_.joined->watch(polls_);
  if (elastic_ != nullptr && !termination_.has_begun()) elastic_->watch(polls_);
  // Last: output that a rank wrote before it ended is taken before its end is.
  polls_.watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });
  if (!deadline.is_never()) polls_.wake_by(now() + deadline.remaining(std::chrono::hours(24)));
  polls_.wait();
  terminal_.flush_some();
}

void Supervisor::on_started(int32_t rank, int32_t pid) { state_of(rank).pid = pid; }

void Supervisor::on_output(int32_t rank, OutputStream stream, std::string_view bytes) {
  RankState& state = state_of(rank);
  if (stream == OutputStream::kOut) {
    state.out.feed(bytes, terminal_.out(), state.tail);
  } else {
    state.err.feed(bytes, terminal_.err(), state.tail);
  }
}

void Supervisor::on_output_end(int32_t rank, OutputStream stream) {
  RankState& state = state_of(rank);
  if (stream == OutputStream::kOut) {
    state.out.finish(terminal_.out(), state.tail);
  } else {
    state.err.finish(terminal_.err(), state.tail);
  }
}

// A result that cannot be kept is missed by whoever asked for it; the job itself has succeeded.
void Supervisor::on_file(const FilePiece& piece) {
  if (!fleet_.returned) return;
  if (const Status taken = fleet_.returned->take(piece); !taken.is_ok()) {
    fleet_.returned.reset();
    terminal_.err().start_line();
    terminal_.err().append(
        concat("horovodrun: the result of rank ", piece.rank, " is lost: ", taken.message(), "\n"));
  }
}

void Supervisor::on_exit(const WorkerExit& exit) {
  RankState& state = state_of(exit.rank);
  if (state.status) return;
  state.status = exit.status;
  state.ended_at = now();
  state.was_asked = exit.was_asked;
  state.note = exit.note;
  state.fate =
      fate_of(exit.status, exit.was_asked ? termination_.step() : TerminationStep::kRunning);
  exits_.push_back({exit.rank, exit.status});
}

void Supervisor::on_message(int32_t rank, std::string_view bytes) {
  if (elastic_ != nullptr && !termination_.has_begun()) elastic_->on_message(rank, bytes);
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
        signal_everybody(AgentSignal::kContinue);
        break;
      default:
        carry_out(termination_.on_signal(event->number, now()));
        break;
    }
  }
}

void Supervisor::stop_with_workers() {
  signal_everybody(AgentSignal::kStop);
  ::kill(::getpid(), SIGSTOP);  // SIGCONT comes back as an event
}

void Supervisor::reap(std::optional<pid_t> announced) {
  int wait_status = 0;
  // Also takes orphans of the workers, which the kernel hands to us (see run_job.cc).
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    for (RemoteHost& host : fleet_.remote) host.take_end(pid, wait_status);
    if (elastic_ != nullptr) elastic_->take_end(pid, wait_status);
    if (!fleet_.local) continue;
    const auto exit = fleet_.local->take_end(pid, wait_status, *this);
    if (!exit) continue;
    if (pid == announced && !announced_) announced_ = exit->rank;
    on_exit(*exit);
  }
  note_exits();
  if (fleet_.local) fleet_.local->forget_empty_groups();
}

void Supervisor::note_exits() {
  const std::vector<RankExit> exits = std::exchange(exits_, {});
  const auto announced = std::exchange(announced_, {});
  if (termination_.has_begun()) return;
  if (elastic_ != nullptr) {
    for (const RankExit& exit : exits) elastic_->on_exit(exit.rank, exit.status);
    return;
  }
  if (!first_failed_) {
    first_failed_ = first_failure(exits, announced);
    if (!first_failed_) return;
    failed_at_ = now();
  }
  if (now() - *failed_at_ >= kLeavingTime || !is_leaver_awaited(*first_failed_, ends())) {
    begin_ending();
  }
}

// When there is something to do though nothing comes.
Deadline Supervisor::next_deadline() const {
  const bool is_waiting = first_failed_ && !termination_.has_begun();
  return is_waiting ? Deadline::after(kLeavingTime, *failed_at_) : termination_.deadline();
}

// What the job decides while it runs, and that it is over.
void Supervisor::note_elastic() {
  if (elastic_ == nullptr || termination_.has_begun()) return;
  elastic_->on_time();
  if (fleet_.local) fleet_.local->report_started(*this);  // some are started later
  if (elastic_->end()) begin_ending();
}

void Supervisor::note_lost_hosts() {
  is_loss_noted_.resize(fleet_.remote.size());
  for (size_t host = 0; host < fleet_.remote.size(); ++host) {
    // An agent of an elastic job that says farewell may have been sent a worker meanwhile.
    const bool is_over = fleet_.remote[host].state() == RemoteHost::State::kLost ||
                         (elastic_ != nullptr && fleet_.remote[host].is_over());
    if (!is_over || is_loss_noted_[host]) continue;
    is_loss_noted_[host] = true;
    lose(host);
  }
}

void Supervisor::lose(size_t host) {
  const RemoteHost& remote = fleet_.remote[host];
  bool had_ranks = false;
  for (int32_t rank : remote.plan().ranks) {
    RankState& state = state_of(rank);
    for (OutputStream stream : {OutputStream::kOut, OutputStream::kErr}) {
      on_output_end(rank, stream);
    }
    if (state.status) continue;
    had_ranks = true;
    state.fate = RankFate::kLost;
    state.ended_at = now();
    if (elastic_ != nullptr && !termination_.has_begun()) {
      elastic_->on_lost(rank, remote.why(), remote.has_greeted());
    }
  }
  if (elastic_ != nullptr) return;
  if (!had_ranks) return;  // they had all ended; nothing is lost but the farewell
  if (!termination_.has_begun() && !first_failed_) {
    lost_host_ = host;
    begin_ending();
  } else if (failed_at_ && !lost_host_ && remote.heard_at() + kGoneBefore < *failed_at_) {
    lost_host_ = host;  // those who failed had noticed it before us
  }
}

void Supervisor::begin_ending() {
  if (!failed_at_) failed_at_ = now();
  carry_out(termination_.on_failure(now()));
}

void Supervisor::signal_everybody(AgentSignal signal) {
  for (RemoteHost& host : fleet_.remote) host.signal(signal);
  if (!fleet_.local) return;
  switch (signal) {
    case AgentSignal::kTerminate:
      fleet_.local->note_asked();
      // A stopped process sees SIGTERM only when it goes on.
      fleet_.local->signal_groups({SIGTERM, SIGCONT});
      break;
    case AgentSignal::kKill:
      fleet_.local->note_asked();
      fleet_.local->signal_groups({SIGKILL});
      break;
    case AgentSignal::kStop:
      fleet_.local->signal_groups({SIGSTOP});
      break;
    case AgentSignal::kContinue:
      fleet_.local->signal_groups({SIGCONT});
      break;
  }
}

void Supervisor::carry_out(TerminationAction action) {
  switch (action) {
    case TerminationAction::kSendTerminate:
      signal_everybody(AgentSignal::kTerminate);
      break;
    case TerminationAction::kSendKill:
      signal_everybody(AgentSignal::kKill);
      break;
    case TerminationAction::kNone:
    case TerminationAction::kGiveUp:
      break;
  }
}

std::vector<RankEnd> Supervisor::ends() const {
  std::vector<RankEnd> ends;
  for (const RankState& state : fleet_.ranks) {
    ends.push_back({.status = state.status, .was_asked = state.was_asked, .note = state.note});
  }
  return ends;
}

bool Supervisor::is_everybody_gone() const {
  return (!fleet_.local || fleet_.local->is_everybody_gone()) &&
         std::all_of(fleet_.remote.begin(), fleet_.remote.end(),
                     [](const RemoteHost& host) { return host.is_over(); });
}

void Supervisor::drain_output() {
  if (!fleet_.local) return;
  const Deadline deadline = Deadline::after(kDrainTime);
  while (!fleet_.local->is_output_closed() && !deadline.passed()) turn(deadline);
  fleet_.local->close_output(*this);
}

}  // namespace hvd::launch
