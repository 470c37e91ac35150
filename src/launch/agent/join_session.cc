#include "launch/agent/join_session.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "launch/os/exit_status.h"
#include "launch/os/now.h"
#include "launch/os/spawn.h"
#include "launch/ranks/termination.h"
#include "net/sealed_stream.h"
#include "net/tcp_stream.h"

namespace hvd::launch {
namespace {

// The launcher speaks every second.
constexpr Nanoseconds kLauncherSilenceOfHost = std::chrono::seconds(5);
constexpr Nanoseconds kAgentDialTime = std::chrono::seconds(10);
// Agents end their workers by themselves, with the grace that the launcher gave them.
constexpr Nanoseconds kAgentsTime = std::chrono::seconds(30);

}  // namespace

JoinSession::JoinSession(JoinFacts facts, FrameStream link, const EnvironmentList& environment,
                         const Signals& signals, const DescriptorLimit& limit, Say say)
    : facts_(std::move(facts)),
      link_(std::move(link)),
      environment_(environment),
      signals_(signals),
      limit_(limit),
      say_(std::move(say)) {}

JoinSession::~JoinSession() {
  for (const Agent& agent : agents_) {
    if (agent.pid < 0) continue;
    ::kill(-agent.pid, SIGKILL);
    while (::waitpid(agent.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<int> JoinSession::run() {
  while (!is_ended() && !is_hurried_) {
    turn(TimePoint::max());
    link_.on_time(now(), kLauncherSilenceOfHost);
  }
  const Status lost = link_.why();
  link_.close(Status::ok());
  end_agents();
  if (refused_) {
    return precondition_error(concat("the launcher at ", facts_.place,
                                     " does not let this host join: ", printable(*refused_)));
  }
  if (end_) {
    say_(concat("the job at ", facts_.place, " is over for host ", facts_.hostname, ": ",
                printable(end_->text)));
    return end_->exit_code;
  }
  if (is_hurried_) return 128 + signal_.value_or(SIGTERM);
  return precondition_error(
      concat("host ", facts_.hostname, " has lost the launcher: ", lost.message()));
}

void JoinSession::turn(TimePoint wake_at) {
  polls_.clear();
  link_.watch(polls_, [this](const Frame& frame) { take(frame); });
  for (Agent& agent : agents_) {
    if (agent.dialler) {
      polls_.watch(agent.dialler->descriptor(), POLLIN, [this, &agent] { connect(agent); });
    }
    if (agent.pump) agent.pump->watch(polls_);
  }
  polls_.watch(signals_.poll_fd(), POLLIN, [this] { take_signals(); });
  if (wake_at != TimePoint::max()) polls_.wake_by(wake_at);
  polls_.wait();
  for (Agent& agent : agents_) {
    if (agent.pump && agent.pump->has_stream_ended()) agent.pump->end_local();
  }
  drop_ended();
}

void JoinSession::drop_ended() {
  agents_.remove_if([](const Agent& agent) {
    return !agent.dialler && agent.pid < 0 && (!agent.pump || agent.pump->is_over());
  });
}

void JoinSession::take(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kJoined:
      say_(concat("host ", facts_.hostname, " has joined the job at ", facts_.place, " with ",
                  facts_.slots, facts_.slots == 1 ? " slot" : " slots",
                  "; workers start here when there is room for them"));
      break;
    case FrameKind::kRefused:
      refused_ = frame.payload;
      break;
    case FrameKind::kOpen:
      open_agent(frame.payload);
      break;
    case FrameKind::kEnd: {
      auto message = decode_end(frame.payload);
      if (message) {
        end_ = *std::move(message);
      } else {
        link_.close(message.status());
      }
      break;
    }
    default:  // heartbeats
      break;
  }
}

void JoinSession::open_agent(std::string_view payload) {
  const auto number = decode_number(payload);
  if (!number) return link_.close(number.status());
  auto dialler = net::Dialler::start(concat("the launcher at ", facts_.place), facts_.addresses,
                                     facts_.key, {.epoch = *number, .purpose = kAgentPurpose},
                                     Deadline::after(kAgentDialTime));
  // The launcher notices that nobody comes.
  if (!dialler) return say_(dialler.status().message());
  agents_.push_back({.dialler = *std::move(dialler)});
}

void JoinSession::connect(Agent& agent) {
  auto connected = agent.dialler->poll();
  if (connected.is_ok() && *connected == nullptr) return;
  agent.dialler.reset();
  const Status started = connected ? start(agent, **connected) : connected.status();
  if (!started.is_ok()) say_(concat("an agent could not be started: ", started.message()));
}

Status JoinSession::start(Agent& agent, net::Dialler::Connected& connected) {
  HVD_TRY(net::prepare_tcp_socket(connected.socket.get(), {}));
  HVD_TRY_ASSIGN(LocalPair pair, make_local_pair());
  std::vector<std::string> words = {facts_.executable, "--agent"};
  EnvironmentList variables = environment_;
  // What exec could not do shows as the end of the connection.
  const UniqueFd report(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  HVD_TRY_ASSIGN(agent.pid, spawn_process({.rank = -1,
                                           .path = facts_.executable.c_str(),
                                           .arguments = exec_pointers(words).data(),
                                           .shell_arguments = exec_pointers(words).data(),
                                           .environment = exec_pointers(variables).data(),
                                           .stdin_fd = pair.theirs.get(),
                                           .stdout_fd = pair.theirs.get(),
                                           .stderr_fd = STDERR_FILENO,
                                           .inherited_fds = {},
                                           .report_fd = report.get()},
                                          signals_, limit_));
  agent.pump.emplace(
      net::make_sealed_stream(std::move(connected.socket), concat("the launcher at ", facts_.place),
                              connected.session_key, net::SealRole::kDialler),
      std::move(pair.ours));
  return Status::ok();
}

void JoinSession::take_signals() {
  while (const auto event = signals_.next()) {
    switch (event->number) {
      case SIGCHLD:
        reap();
        break;
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
        leave(event->number);
        break;
      case SIGTSTP:
        ::raise(SIGSTOP);
        break;
      default:
        break;
    }
  }
}

// The workers here finish their step and go, and the launcher says when that is done.
void JoinSession::leave(int signal) {
  if (signal_) {
    is_hurried_ = now() - signalled_at_ >= Termination::kRepeatGap;
    return;
  }
  signal_ = signal;
  signalled_at_ = now();
  link_.send(FrameKind::kLeave, {});
  say_(concat(describe_signal(signal), ": host ", facts_.hostname,
              " leaves the job when its workers have finished their step; a second signal ends "
              "them at once"));
}

void JoinSession::reap() {
  int wait_status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    for (Agent& agent : agents_) {
      if (agent.pid == pid) agent.pid = -1;
    }
  }
}

// Without their connection they end their workers, then themselves.
void JoinSession::end_agents() {
  for (Agent& agent : agents_) {
    agent.dialler.reset();
    agent.pump.reset();
  }
  drop_ended();
  const TimePoint give_up_at = now() + kAgentsTime;
  while (!agents_.empty() && now() < give_up_at) turn(give_up_at);
}

}  // namespace hvd::launch
