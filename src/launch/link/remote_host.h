// remote_host.h - the launcher's end of the connection to one other host: the ssh process, what it
// says, and the agent behind it. One thread; never blocks.
//
//   connecting --ready--> ready --go()--> running --gone--> gone
//       |                   |                |
//       +-------------------+----------------+--> lost: why() says how
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/link/agent_message.h"
#include "launch/os/byte_queue.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/exit_status.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "launch/plan/plan.h"
#include "launch/ranks/worker_events.h"

namespace hvd::launch {

class RemoteHost {
 public:
  enum class State { kConnecting, kReady, kRunning, kGone, kLost };

  // Starts ssh. `first_message`, which may hold secrets, is sent when the agent has said its hello:
  // not to a login shell, nor to whatever else runs there.
  static Result<RemoteHost> connect(const HostPlan& plan, const EnvironmentList& environment,
                                    std::string_view first_message, const Signals& signals,
                                    const DescriptorLimit& limit);

  // The same over a socket to an agent that is there already, or soon (joined_hosts.h).
  static Result<RemoteHost> adopt(const HostPlan& plan, UniqueFd socket,
                                  std::string_view first_message);

  // Kills ssh if it is still there; the agent notices that its input has ended.
  ~RemoteHost();
  RemoteHost(RemoteHost&& other) noexcept;
  RemoteHost& operator=(RemoteHost&&) = delete;

  const HostPlan& plan() const { return *plan_; }
  State state() const { return state_; }
  bool is_over() const { return state_ == State::kGone || state_ == State::kLost; }
  // Once lost: what happened, with the last words of ssh. The exit code is the agent's, or 125.
  const std::string& why() const { return why_; }
  int exit_code() const { return exit_code_; }
  TimePoint heard_at() const { return heard_at_; }
  bool has_greeted() const { return has_greeted_; }  // horovodrun runs there

  void go();
  void ask(FrameKind kind, std::string_view payload);  // see WorkerEvents::on_answer
  void signal(AgentSignal signal);
  // Of an elastic job.
  void send_message(int32_t worker, std::string_view bytes);
  void kill_one(int32_t worker);
  // How much of rank 0's input may be sent now.
  size_t input_room() const;
  void send_input(std::string_view bytes);  // empty: the end

  // `may_read`: whether there is room for more output.
  void watch(PollSet& polls, WorkerEvents& events, bool may_read);
  // Heartbeats; and whether an agent that is silent for `silence` is lost.
  void on_time(TimePoint now, Nanoseconds silence);
  // A child of this process has ended; true if it was our ssh.
  bool take_end(pid_t pid, int wait_status);
  // Nobody waits for it any longer.
  void give_up(std::string why);

 private:
  RemoteHost(const HostPlan& plan, pid_t pid, UniqueFd in, UniqueFd out, UniqueFd err);
  void send(FrameKind kind, std::string_view payload);
  void flush();
  void read_frames(WorkerEvents& events);
  void read_words();
  Status take(const Frame& frame, WorkerEvents& events);
  Status take_of_worker(const Frame& frame, WorkerEvents& events);
  bool owns(int32_t rank) const;
  void close_connection(std::string reason);
  void settle();
  std::string describe_end() const;

  const HostPlan* plan_;
  pid_t pid_;  // of ssh; -1: it has been waited for, or there is none
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  State state_ = State::kConnecting;
  FrameReader reader_{true};
  ByteQueue queue_;
  std::string words_;  // the end of what ssh, or the login shell, wrote to its standard error
  std::optional<ExitStatus> ssh_end_;
  std::optional<TimePoint> closed_at_;
  std::string closed_why_;  // empty: the stream simply ended
  bool has_greeted_ = false;
  bool was_reading_ = true;
  std::string why_;
  int exit_code_ = static_cast<int>(LauncherExit::kLauncherFailed);
  TimePoint heard_at_;
  TimePoint next_heartbeat_;
  size_t input_on_way_ = 0;
};

}  // namespace hvd::launch
