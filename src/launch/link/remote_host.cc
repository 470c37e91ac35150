#include "launch/link/remote_host.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/os/command_path.h"
#include "launch/os/now.h"
#include "launch/os/pipes.h"
#include "launch/os/spawn.h"

namespace hvd::launch {
namespace {

constexpr size_t kKeptWords = 4096;
// ssh ends soon after its streams do, and then we know its exit code.
constexpr std::chrono::seconds kFarewellTime{1};
constexpr int kShellNotFound = 127;
constexpr int kShellNotExecutable = 126;
constexpr int kSshFailed = 255;

// Into the middle of a line: a report's last line names the host, whatever a login shell printed.
std::string in_one_line(std::string_view words) {
  std::string line = printable(words);
  for (size_t at = 0; (at = line.find('\n', at)) != std::string::npos; at += 2) {
    line.replace(at, 1, "; ");
  }
  return line;
}

}  // namespace

RemoteHost::RemoteHost(const HostPlan& plan, pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err)
    : plan_(&plan),
      pid_(pid),
      in_(std::move(in)),
      out_(std::move(out)),
      err_(std::move(err)),
      heard_at_(now()),
      next_heartbeat_(now() + kHeartbeatPeriod) {}

RemoteHost::RemoteHost(RemoteHost&& other) noexcept
    : plan_(other.plan_),
      pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      state_(other.state_),
      reader_(std::move(other.reader_)),
      queue_(std::move(other.queue_)),
      heard_at_(other.heard_at_),
      next_heartbeat_(other.next_heartbeat_) {}

RemoteHost::~RemoteHost() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<RemoteHost> RemoteHost::connect(const HostPlan& plan, const EnvironmentList& environment,
                                       std::string_view first_message, const Signals& signals,
                                       const DescriptorLimit& limit) {
  const CommandPath program = find_command(
      plan.agent_command.front(), get_variable(environment, "PATH").value_or("/usr/bin:/bin"));
  if (program.problem != CommandProblem::kNone) {
    return precondition_error(concat("host ", plan.name, " cannot be reached: ", program.reason));
  }
  HVD_TRY_ASSIGN(Pipe in, pipe_to_write());
  HVD_TRY_ASSIGN(Pipe out, pipe_to_read());
  HVD_TRY_ASSIGN(Pipe err, pipe_to_read());
  std::vector<std::string> arguments = plan.agent_command;
  std::vector<std::string> shell_arguments = plan.agent_command;
  shell_arguments.front() = program.path;
  shell_arguments.insert(shell_arguments.begin(), "/bin/sh");
  EnvironmentList variables = environment;
  // What exec could not do shows in the exit code.
  const UniqueFd report(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  HVD_TRY_ASSIGN(const pid_t pid,
                 spawn_process({.rank = -1,
                                .path = program.path.c_str(),
                                .arguments = exec_pointers(arguments).data(),
                                .shell_arguments = exec_pointers(shell_arguments).data(),
                                .environment = exec_pointers(variables).data(),
                                .stdin_fd = in.theirs.get(),
                                .stdout_fd = out.theirs.get(),
                                .stderr_fd = err.theirs.get(),
                                .inherited_fds = {},
                                .report_fd = report.get()},
                               signals, limit));
  RemoteHost host(plan, pid, std::move(in.ours), std::move(out.ours), std::move(err.ours));
  host.queue_.append(first_message);
  return host;
}

Result<RemoteHost> RemoteHost::adopt(const HostPlan& plan, UniqueFd socket,
                                     std::string_view first_message) {
  UniqueFd in(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!in.valid()) return errno_status("cannot copy a descriptor", errno);
  RemoteHost host(plan, -1, std::move(in), std::move(socket), {});
  host.queue_.append(first_message);
  return host;
}

void RemoteHost::send(FrameKind kind, std::string_view payload) {
  if (!in_.valid()) return;
  queue_.append(encode_frame(kind, payload));
  flush();
}

void RemoteHost::flush() {
  // A broken pipe shows on the other side, too, with a reason.
  if (in_.valid() && has_greeted_ && queue_.flush_some(in_.get()) != 0) {
    in_.reset();
    queue_.clear();
  }
}

void RemoteHost::ask(FrameKind kind, std::string_view payload) { send(kind, payload); }

void RemoteHost::go() {
  state_ = State::kRunning;
  send(FrameKind::kGo, {});
}

void RemoteHost::signal(AgentSignal signal) {
  if (is_over()) return;
  const char code = static_cast<char>(signal);
  send(FrameKind::kSignal, {&code, 1});
}

void RemoteHost::send_message(int32_t worker, std::string_view bytes) {
  if (!is_over()) send(FrameKind::kMessage, encode(ElasticMessage{worker, bytes}));
}

void RemoteHost::kill_one(int32_t worker) {
  if (!is_over()) send(FrameKind::kKillOne, encode_number(static_cast<uint32_t>(worker)));
}

size_t RemoteHost::input_room() const {
  return state_ == State::kRunning && input_on_way_ < kInputWindowBytes
             ? kInputWindowBytes - input_on_way_
             : 0;
}

void RemoteHost::send_input(std::string_view bytes) {
  input_on_way_ += bytes.size();
  send(FrameKind::kInput, bytes);
}

void RemoteHost::watch(PollSet& polls, WorkerEvents& events, bool may_read) {
  if (is_over()) return;
  // An agent that we do not listen to is not silent.
  if (may_read && !was_reading_) heard_at_ = now();
  was_reading_ = may_read;
  if (may_read) polls.watch(out_.get(), POLLIN, [this, &events] { read_frames(events); });
  polls.watch(err_.get(), POLLIN, [this] { read_words(); });
  if (has_greeted_ && !queue_.is_empty()) polls.watch(in_.get(), POLLOUT, [this] { flush(); });
  polls.wake_by(closed_at_ ? *closed_at_ + kFarewellTime : next_heartbeat_);
}

void RemoteHost::read_words() {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(err_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    err_.reset();
    settle();
    return;
  }
  words_.append(buffer.data(), static_cast<size_t>(count));
  if (words_.size() > kKeptWords) words_.erase(0, words_.size() - kKeptWords);
}

void RemoteHost::read_frames(WorkerEvents& events) {
  static std::array<char, 65536> buffer;  // this thread alone
  const ssize_t count = ::read(out_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    close_connection({});
    return;
  }
  heard_at_ = now();
  reader_.append({buffer.data(), static_cast<size_t>(count)});
  while (!is_over() && !closed_at_) {
    const auto frame = reader_.next();
    if (!frame) {
      close_connection(frame.status().message());
      return;
    }
    if (!*frame) return;
    if (const Status taken = take(**frame, events); !taken.is_ok()) {
      close_connection(taken.message());
    }
  }
}

bool RemoteHost::owns(int32_t rank) const {
  return std::find(plan_->ranks.begin(), plan_->ranks.end(), rank) != plan_->ranks.end();
}

Status RemoteHost::take(const Frame& frame, WorkerEvents& events) {
  switch (frame.kind) {
    case FrameKind::kHello: {
      HVD_TRY_ASSIGN(const HelloMessage hello, decode_hello(frame.payload));
      has_greeted_ = true;
      if (hello.version != version_text()) {
        return precondition_error(concat("it has Horovod ", printable(hello.version), ", here is ",
                                         version_text(), ": install the same version"));
      }
      flush();  // what waited for it
      return Status::ok();
    }
    case FrameKind::kReady:
      if (state_ == State::kConnecting) state_ = State::kReady;
      return Status::ok();
    case FrameKind::kProblem: {
      HVD_TRY_ASSIGN(const ProblemMessage problem, decode_problem(frame.payload));
      exit_code_ = problem.exit_code;
      return precondition_error(printable(problem.text));
    }
    case FrameKind::kInputTaken: {
      HVD_TRY_ASSIGN(const uint32_t count, decode_number(frame.payload));
      input_on_way_ -= std::min<size_t>(count, input_on_way_);
      return Status::ok();
    }
    case FrameKind::kGone:
      state_ = State::kGone;
      in_.reset();
      if (pid_ < 0) out_.reset();  // whoever carries the bytes sees that we are through
      return Status::ok();
    case FrameKind::kFacts:
    case FrameKind::kProbed:
      if (state_ == State::kConnecting) state_ = State::kReady;
      events.on_answer(plan_->name, static_cast<uint8_t>(frame.kind), frame.payload);
      return Status::ok();
    default:
      return take_of_worker(frame, events);
  }
}

Status RemoteHost::take_of_worker(const Frame& frame, WorkerEvents& events) {
  const auto check_rank = [this](int32_t rank) {
    return owns(rank) ? Status::ok() : corrupted(concat("it speaks of rank ", rank));
  };
  switch (frame.kind) {
    case FrameKind::kStarted: {
      HVD_TRY_ASSIGN(const StartedMessage started, decode_started(frame.payload));
      HVD_TRY(check_rank(started.rank));
      events.on_started(started.rank, started.pid);
      return Status::ok();
    }
    case FrameKind::kOutput:
    case FrameKind::kOutputEnd: {
      HVD_TRY_ASSIGN(const OutputMessage output, decode_output(frame.payload));
      HVD_TRY(check_rank(output.rank));
      if (frame.kind == FrameKind::kOutput) {
        events.on_output(output.rank, output.stream, output.bytes);
      } else {
        events.on_output_end(output.rank, output.stream);
      }
      return Status::ok();
    }
    case FrameKind::kExit: {
      HVD_TRY_ASSIGN(const WorkerExit exit, decode_exit(frame.payload));
      HVD_TRY(check_rank(exit.rank));
      events.on_exit(exit);
      return Status::ok();
    }
    case FrameKind::kMessage: {
      HVD_TRY_ASSIGN(const ElasticMessage message, decode_message(frame.payload));
      HVD_TRY(check_rank(message.worker));
      events.on_message(message.worker, message.bytes);
      return Status::ok();
    }
    case FrameKind::kFile: {
      HVD_TRY_ASSIGN(const FilePiece piece, decode_file(frame.payload));
      HVD_TRY(check_rank(piece.rank));
      events.on_file(piece);
      return Status::ok();
    }
    default:
      return Status::ok();
  }
}

void RemoteHost::on_time(TimePoint time, Nanoseconds silence) {
  if (is_over()) return;
  settle();
  if (closed_at_ || time < next_heartbeat_) return;
  // We were away ourselves (stopped, or held up): what came meanwhile has not been read yet.
  if (time - next_heartbeat_ > kAwayTime) heard_at_ = time;
  next_heartbeat_ = time + kHeartbeatPeriod;
  if (has_greeted_) send(FrameKind::kHeartbeat, {});
  if (has_greeted_ && was_reading_ && time - heard_at_ > silence) {
    const auto span = std::chrono::duration_cast<std::chrono::seconds>(time - heard_at_);
    give_up(concat("nothing was heard from it for ", span.count(), " s"));
  }
}

bool RemoteHost::take_end(pid_t pid, int wait_status) {
  if (pid != pid_) return false;
  pid_ = -1;
  ssh_end_ = ExitStatus::from_wait_status(wait_status);
  settle();
  return true;
}

void RemoteHost::close_connection(std::string reason) {
  closed_at_ = now();
  closed_why_ = std::move(reason);
  in_.reset();
  out_.reset();
  queue_.clear();
  settle();
}

void RemoteHost::give_up(std::string why) {
  if (is_over()) return;
  closed_why_ = std::move(why);
  state_ = State::kLost;
  why_ = describe_end();
  in_.reset();
  out_.reset();
}

// Lost, once everything that could explain it has come.
void RemoteHost::settle() {
  if (is_over() || !closed_at_) return;
  const bool is_complete = pid_ < 0 && !err_.valid();
  if (!is_complete && closed_why_.empty() && now() < *closed_at_ + kFarewellTime) return;
  state_ = State::kLost;
  why_ = describe_end();
}

std::string RemoteHost::describe_end() const {
  const bool has_shell = !plan_->agent_command.empty();
  const std::string_view shell = has_shell ? plan_->agent_command.front() : std::string_view();
  std::string text;
  if (!closed_why_.empty()) {
    text = closed_why_;
  } else if (has_greeted_) {
    text = "the connection was lost";
  } else if (ssh_end_ && ssh_end_->code == kShellNotFound) {
    text =
        "horovodrun was not found there; install Horovod at the same path as here, or set "
        "HOROVOD_REMOTE_EXECUTABLE to its path on that host";
  } else if (ssh_end_ && ssh_end_->code == kShellNotExecutable) {
    text = "horovodrun cannot be executed there; HOROVOD_REMOTE_EXECUTABLE names another one";
  } else if (ssh_end_ && ssh_end_->code == kSshFailed) {
    text = concat(shell, " could not connect");
  } else if (ssh_end_) {
    text = concat(shell, " ", describe(*ssh_end_), " before horovodrun answered");
  } else {
    text = "the connection was closed before horovodrun answered";
  }
  // Where nothing was explained, what a login shell printed may explain it.
  const std::string_view words = trim(words_);
  const std::string_view noise = has_greeted_ ? std::string_view() : trim(reader_.noise());
  if (!words.empty()) text += concat("; ", shell, " says: ", in_one_line(words));
  if (words.empty() && !noise.empty())
    text += concat("; it says: ", in_one_line(noise.substr(0, 500)));
  return text;
}

}  // namespace hvd::launch
