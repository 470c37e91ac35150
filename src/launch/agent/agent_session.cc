#include "launch/agent/agent_session.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "base/version.h"
#include "launch/doctor/doctor_facts.h"
#include "launch/os/command_path.h"
#include "launch/os/now.h"
#include "launch/os/pipes.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {
namespace {

// The launcher speaks every second, and says so before it lets itself be stopped (Ctrl-Z). If its
// host tells us that it has gone, we know at once; if the network has gone, this is how we notice.
constexpr std::chrono::seconds kLauncherSilence{5};
// Beyond this the ranks wait (their pipes are not read) until the launcher has caught up.
constexpr size_t kHighWaterBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kAgentDrainTime{200};
constexpr std::chrono::seconds kLastWordsTime{5};  // without progress
constexpr std::chrono::seconds kOneProbeTime{8};

}  // namespace

void AgentSession::run() {
  to_launcher_.append(kAgentMagic);
  send(FrameKind::kHello,
       encode(
           HelloMessage{.version = version_text(),
                        .hostname = own_hostname().is_ok() ? *own_hostname() : std::string("?")}));
  heard_at_ = next_heartbeat_ = now();
  while (!is_done()) turn();
  finish();
}

void AgentSession::turn() {
  polls_.clear();
  if (workers_) {
    workers_->watch(polls_, *this, [this](OutputStream) {
      return !has_launcher_ || to_launcher_.size() < kHighWaterBytes;
    });
  }
  if (has_launcher_) {
    polls_.watch(STDIN_FILENO, POLLIN, [this] { read_commands(); });
    if (!to_launcher_.is_empty()) polls_.watch(STDOUT_FILENO, POLLOUT, [] {});  // flushed below
    polls_.wake_by(next_heartbeat_);
  }
  if (probes_) probes_->watch(polls_);
  if (!input_.is_empty()) polls_.watch(input_end_.get(), POLLOUT, [this] { flush_input(); });
  // Last: output that a rank wrote before it ended is taken before its end is.
  polls_.watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });
  if (termination_ && !termination_->deadline().is_never()) {
    polls_.wake_by(now() + termination_->deadline().remaining(std::chrono::hours(1)));
  }
  polls_.wait();

  if (has_launcher_ && now() >= next_heartbeat_) {
    send(FrameKind::kHeartbeat, {});
    next_heartbeat_ = now() + kHeartbeatPeriod;
    if (!is_paused_ && now() - heard_at_ > kLauncherSilence) lose_launcher();
  }
  if (termination_) carry_out(termination_->on_time(now()));
  flush();
}

void AgentSession::send(FrameKind kind, std::string_view payload) {
  if (has_launcher_) to_launcher_.append(encode_frame(kind, payload));
}

void AgentSession::flush() {
  if (has_launcher_ && to_launcher_.flush_some(STDOUT_FILENO) != 0) lose_launcher();
}

void AgentSession::lose_launcher() {
  if (!has_launcher_) return;
  has_launcher_ = false;
  to_launcher_.clear();
  is_told_to_leave_ = true;
  if (!workers_) return;
  if (!termination_) termination_.emplace(grace_);
  carry_out(termination_->on_failure(now()));
}

void AgentSession::read_commands() {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return lose_launcher();
  heard_at_ = now();
  reader_.append({buffer.data(), static_cast<size_t>(count)});
  while (has_launcher_) {
    const auto frame = reader_.next();
    if (!frame) return lose_launcher();
    if (!*frame) return;
    take(**frame);
  }
}

void AgentSession::take(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kStart:
      if (const Status ready = prepare(frame.payload); !ready.is_ok()) {
        report(ready, static_cast<int>(LauncherExit::kLauncherFailed));
      }
      break;
    case FrameKind::kGo:
      if (const Status started = start(); !started.is_ok()) {
        report(started, static_cast<int>(LauncherExit::kLauncherFailed));
      }
      break;
    case FrameKind::kSignal:
      if (frame.payload.size() == 1) {
        signal_ranks(static_cast<AgentSignal>(static_cast<uint8_t>(frame.payload.front())));
      }
      break;
    case FrameKind::kMessage:
      if (const auto message = decode_message(frame.payload); message && workers_) {
        workers_->send_message(message->worker, std::string(message->bytes));
      }
      break;
    case FrameKind::kKillOne:
      if (const auto worker = decode_number(frame.payload); worker && workers_) {
        workers_->kill_one(static_cast<int32_t>(*worker));
      }
      break;
    case FrameKind::kInput:
      take_input(frame.payload);
      break;
    case FrameKind::kInquire:
      if (const Status done = inquire(frame.payload); !done.is_ok()) {
        report(done, static_cast<int>(LauncherExit::kLauncherFailed));
      }
      break;
    case FrameKind::kProbe:
      if (const Status done = probe_host(frame.payload); !done.is_ok()) {
        report(done, static_cast<int>(LauncherExit::kLauncherFailed));
      }
      break;
    default:  // heartbeats
      break;
  }
}

void AgentSession::report(const Status& problem, int exit_code) {
  send(FrameKind::kProblem, encode(ProblemMessage{exit_code, problem.message()}));
  is_told_to_leave_ = true;
}

Status AgentSession::prepare(const std::string& payload) {
  HVD_TRY_ASSIGN(const StartMessage message, decode_start(payload));
  if (start_) return corrupted("told to start twice");
  if (::chdir(message.working_directory.c_str()) != 0) {
    return errno_status(
        concat("cannot enter the working directory '", message.working_directory, "'"), errno);
  }
  LocalStart request{.program = {},
                     .command = message.command,
                     .ranks = {},
                     .key = message.key,
                     .first_stdin = -1,
                     .is_elastic = message.is_elastic};
  const auto set_all = [](EnvironmentList& environment, const EnvironmentList& values) {
    for (const std::string& entry : values) {
      const size_t equals = entry.find('=');
      if (equals == std::string::npos) continue;
      set_variable(environment, entry.substr(0, equals), entry.substr(equals + 1));
    }
  };
  EnvironmentList common = environment_;
  set_all(common, message.environment);
  HVD_TRY(keep_function(message.function, common));
  for (const StartMessage::Rank& rank : message.ranks) {
    EnvironmentList environment = common;
    set_all(environment, rank.variables);
    request.ranks.push_back({.rank = rank.rank, .environment = std::move(environment)});
  }
  const CommandPath program =
      find_command(message.command.front(), get_variable(common, "PATH").value_or("/usr/bin:/bin"));
  if (program.problem != CommandProblem::kNone) {
    const bool is_missing = program.problem == CommandProblem::kNotFound;
    report(precondition_error(program.reason),
           static_cast<int>(is_missing ? LauncherExit::kNotFound : LauncherExit::kNotExecutable));
    return Status::ok();
  }
  request.program = program.path;
  HVD_TRY_ASSIGN(limit_, DescriptorLimit::make_room(static_cast<int32_t>(request.ranks.size())));
  HVD_TRY_ASSIGN(Pipe input, pipe_to_write());
  first_stdin_ = std::move(input.theirs);
  input_end_ = std::move(input.ours);
  request.first_stdin = first_stdin_.get();
  grace_ = message.termination_grace;
  start_ = std::move(request);
  send(FrameKind::kReady, {});
  return Status::ok();
}

// Of horovod.run: ranks find it in a folder of this host.
Status AgentSession::keep_function(const std::string& function, EnvironmentList& environment) {
  if (function.empty()) return Status::ok();
  HVD_TRY_ASSIGN(RunFolder folder,
                 RunFolder::create(get_variable(environment, "TMPDIR").value_or("/tmp"), function));
  set_variable(environment, kRunFolderVariable, folder.path());
  run_folder_.emplace(std::move(folder));
  return Status::ok();
}

Status AgentSession::start() {
  if (!start_ || workers_) return corrupted("told to go before or after the start");
  Result<LocalWorkers> workers = LocalWorkers::start(*start_, signals_, *limit_);
  if (!workers) return workers.status();
  workers_.emplace(*std::move(workers));
  first_stdin_.reset();
  start_->key.clear();
  workers_->report_started(*this);
  return Status::ok();
}

// A doctor's questions are answered one at a time; nothing else goes on meanwhile.
Status AgentSession::inquire(const std::string& payload) {
  HVD_TRY_ASSIGN(const Inquiry inquiry, decode_inquiry(payload));
  HVD_TRY_ASSIGN(probe_key_, net::Key::parse(inquiry.key));
  HostFacts facts{.facts = find_facts(environment_), .probe_addresses = {}};
  Result<ProbeServer> server = ProbeServer::start(*probe_key_, inquiry.interfaces);
  if (server) {
    facts.probe_addresses = server->addresses();
    probes_.emplace(*std::move(server));
  } else {
    facts.facts.push_back({"Listening", "not possible", server.status().message()});
  }
  send(FrameKind::kFacts, encode(facts));
  return Status::ok();
}

Status AgentSession::probe_host(const std::string& payload) {
  HVD_TRY_ASSIGN(const ProbeOrder order, decode_probe_order(payload));
  if (!probe_key_) return corrupted("told to probe before the inquiry");
  send(FrameKind::kProbed,
       encode(probe(order.host, order.addresses, *probe_key_, Deadline::after(kOneProbeTime))));
  return Status::ok();
}

void AgentSession::on_started(int32_t rank, int32_t pid) {
  send(FrameKind::kStarted, encode(StartedMessage{rank, pid}));
}

void AgentSession::on_output(int32_t rank, OutputStream stream, std::string_view bytes) {
  send(FrameKind::kOutput, encode(OutputMessage{rank, stream, bytes}));
}

void AgentSession::on_output_end(int32_t rank, OutputStream stream) {
  send(FrameKind::kOutputEnd, encode(OutputMessage{rank, stream, {}}));
}

void AgentSession::on_message(int32_t rank, std::string_view bytes) {
  send(FrameKind::kMessage, encode(ElasticMessage{rank, bytes}));
}

void AgentSession::on_exit(const WorkerExit& exit) { send(FrameKind::kExit, encode(exit)); }

void AgentSession::take_signals() {
  while (const auto event = signals_.next()) {
    switch (event->number) {
      case SIGCHLD:
        reap();
        break;
      case SIGTERM:
        ask_to_leave();
        break;
      case SIGINT:
      case SIGHUP:
        lose_launcher();  // somebody on this host wants us to go
        break;
      default:
        break;
    }
  }
}

// This host is about to go, as a pod or a node of a batch job. Workers of an elastic job finish
// their step and hand over, by themselves; others cannot. A second signal does not wait for the
// step.
void AgentSession::ask_to_leave() {
  if (!workers_ || !start_->is_elastic) return lose_launcher();
  if (!workers_->ask_to_leave(now())) lose_launcher();
}

void AgentSession::reap() {
  int wait_status = 0;
  // Also takes orphans of the ranks, which the kernel hands to us.
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (!workers_) continue;
    if (const auto exit = workers_->take_end(pid, wait_status, *this)) on_exit(*exit);
  }
  if (workers_) workers_->forget_empty_groups();
}

void AgentSession::carry_out(TerminationAction action) {
  if (action == TerminationAction::kSendTerminate) signal_ranks(AgentSignal::kTerminate);
  if (action == TerminationAction::kSendKill) signal_ranks(AgentSignal::kKill);
}

void AgentSession::signal_ranks(AgentSignal signal) {
  if (!workers_) {
    // Told to end before anything was started.
    is_told_to_leave_ = signal == AgentSignal::kTerminate || signal == AgentSignal::kKill;
    return;
  }
  switch (signal) {
    case AgentSignal::kTerminate:
      workers_->note_asked();
      workers_->signal_groups({SIGTERM, SIGCONT});
      break;
    case AgentSignal::kKill:
      workers_->note_asked();
      workers_->signal_groups({SIGKILL});
      break;
    case AgentSignal::kStop:
      is_paused_ = true;
      workers_->signal_groups({SIGSTOP});
      break;
    case AgentSignal::kContinue:
      is_paused_ = false;
      workers_->signal_groups({SIGCONT});
      break;
  }
  workers_->forget_empty_groups();
}

void AgentSession::take_input(std::string_view bytes) {
  if (bytes.empty()) input_has_ended_ = true;
  // What the launcher may send before we have said that it was taken is bounded; more is a mistake.
  if (input_.size() + bytes.size() > 2 * kInputWindowBytes) return lose_launcher();
  input_.append(bytes);
  flush_input();
}

void AgentSession::flush_input() {
  const size_t before = input_.size();
  if (input_end_.valid() && input_.flush_some(input_end_.get()) != 0) {
    input_end_.reset();  // rank 0 reads no more
  }
  if (!input_end_.valid()) input_.clear();
  if (before > input_.size()) {
    send(FrameKind::kInputTaken, encode_number(static_cast<uint32_t>(before - input_.size())));
  }
  if (input_has_ended_ && input_.is_empty()) input_end_.reset();
}

bool AgentSession::is_done() const {
  if (!workers_) return is_told_to_leave_ || !has_launcher_;
  const bool given_up = termination_ && termination_->step() == TerminationStep::kGivenUp;
  return given_up || workers_->is_everybody_gone();
}

void AgentSession::finish() {
  if (workers_) {
    const Deadline drained = Deadline::after(kAgentDrainTime);
    while (!workers_->is_output_closed() && !drained.passed()) {
      polls_.clear();
      workers_->watch(polls_, *this, [](OutputStream) { return true; });
      polls_.wake_by(now() + drained.remaining(kAgentDrainTime));
      polls_.wait();
    }
    workers_->close_output(*this);
    return_files();
    run_folder_
        .reset();  // the launcher may let this process end at once when it hears that all are gone
    send(FrameKind::kGone, {});
  }
  flush_down_to(0);
}

void AgentSession::return_files() {
  if (!run_folder_ || !start_) return;
  for (const LocalRank& rank : start_->ranks) {
    run_folder_->read_files(rank.rank, [this](const FilePiece& piece) {
      send(FrameKind::kFile, encode(piece));
      flush_down_to(kHighWaterBytes);
      return has_launcher_;
    });
  }
}

// Sends until no more than so much is left, or nothing moves any more.
void AgentSession::flush_down_to(size_t most_bytes) {
  flush();
  Deadline farewell = Deadline::after(kLastWordsTime);
  while (has_launcher_ && to_launcher_.size() > most_bytes && !farewell.passed()) {
    const size_t before = to_launcher_.size();
    polls_.clear();
    polls_.watch(STDOUT_FILENO, POLLOUT, [] {});
    polls_.wake_by(now() + farewell.remaining(kLastWordsTime));
    polls_.wait();
    flush();
    if (to_launcher_.size() < before) farewell = Deadline::after(kLastWordsTime);
  }
}

}  // namespace hvd::launch
