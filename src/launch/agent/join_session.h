// join_session.h - the event loop of a host that has joined a job: what the launcher asks for, the
// agents, the bytes between both. One thread; blocks in poll() only, with a deadline whenever
// something could fail to come.
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launch/agent/join.h"
#include "launch/link/frame_stream.h"
#include "launch/link/join_message.h"
#include "launch/link/stream_pump.h"
#include "launch/os/descriptor_limit.h"
#include "launch/os/poll_set.h"
#include "launch/os/signals.h"
#include "net/dialler.h"
#include "net/keys/key.h"

namespace hvd::launch {

struct JoinFacts {
  std::string place;  // of the launcher, for messages
  std::string hostname;
  int32_t slots = 0;
  std::vector<net::Address> addresses;  // of the launcher
  net::Key key;
  std::string executable;  // this program
};

class JoinSession {
 public:
  JoinSession(JoinFacts facts, FrameStream link, const EnvironmentList& environment,
              const Signals& signals, const DescriptorLimit& limit, Say say);
  ~JoinSession();
  JoinSession(const JoinSession&) = delete;
  JoinSession& operator=(const JoinSession&) = delete;

  // See run_join.
  Result<int> run();

 private:
  struct Agent {
    std::unique_ptr<net::Dialler> dialler = {};  // until the connection is there
    std::optional<StreamPump> pump = {};
    pid_t pid = -1;
  };

  void turn(TimePoint wake_at);
  void take(const Frame& frame);
  void open_agent(std::string_view payload);
  void connect(Agent& agent);
  Status start(Agent& agent, net::Dialler::Connected& connected);
  void take_signals();
  void leave(int signal);
  void reap();
  bool is_ended() const { return !link_.is_open() || end_ || refused_; }
  void end_agents();
  void drop_ended();

  JoinFacts facts_;
  FrameStream link_;
  const EnvironmentList& environment_;
  const Signals& signals_;
  const DescriptorLimit& limit_;
  Say say_;
  PollSet polls_;
  std::list<Agent> agents_;
  std::optional<EndMessage> end_;
  std::optional<std::string> refused_;
  std::optional<int> signal_;  // asks us to go
  TimePoint signalled_at_{};
  bool is_hurried_ = false;  // asked twice
};

}  // namespace hvd::launch
