// watch.h - the thread that notices when peers die or freeze.
// Death: it sleeps on their process descriptors, so it knows within a scheduler latency. Frozen:
// every rank's watch thread raises a heartbeat; a peer whose heartbeat stands still for many of OUR
// ticks is frozen (a suspended machine or job does not tick itself, so nobody is blamed after it
// wakes up).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "engine/health/peer_processes.h"
#include "shm/job.h"

namespace hvd::engine {

// All called from the watch thread.
class WatchHost {
 public:
  virtual ~WatchHost() = default;
  virtual void peer_lost(int rank, const std::string& how) = 0;
  virtual void peer_frozen(int rank, Nanoseconds silence) = 0;
  virtual void tick() = 0;
  virtual bool is_waiting() = 0;  // operations are pending
};

class Watch {
 public:
  struct Times {
    Nanoseconds frozen_after;
    Nanoseconds period;  // between ticks, at most
  };
  static Result<std::unique_ptr<Watch>> start(WatchHost& host, const shm::Job& job,
                                              const PeerProcesses& processes, const Times& times);
  ~Watch();

 private:
  Watch(WatchHost& host, const shm::Job& job, const PeerProcesses& processes, const Times& times);
  void main(const std::stop_token& stop);
  void sleep(Nanoseconds span);
  void look_for_deaths();
  void look_for_frozen(Nanoseconds since_last);

  struct Peer {
    uint32_t heartbeat = 0;
    Nanoseconds silence{0};
    bool reported = false;
    bool left = false;
  };
  WatchHost& host_;
  const shm::Job& job_;
  const PeerProcesses& processes_;
  const Nanoseconds frozen_after_;
  Nanoseconds period_;
  UniqueFd stop_event_;
  std::vector<Peer> peers_;
  std::jthread thread_;  // last
};

}  // namespace hvd::engine
