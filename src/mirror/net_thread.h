// net_thread.h - hvd-net: looks after the control streams while nobody drives the engine, and after
// the data streams of a rank that sleeps. Says once in a while that this rank lives.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "mirror/mirror.h"
#include "shm/job.h"

namespace hvd::mirror {

class NetThreadHost {
 public:
  virtual ~NetThreadHost() = default;
  // Something came while nobody was driving. Called by hvd-net, without locks.
  virtual void news_came() = 0;
};

class NetThread {
 public:
  static Result<std::unique_ptr<NetThread>> start(Mirror& mirror, const shm::Job& job,
                                                  NetThreadHost& host);
  ~NetThread();

  // A thread of this rank goes to sleep: from now on the streams are watched at once, and one of
  // these descriptors (of data streams) becoming ready wakes the sleeper.
  void arm(std::vector<pollfd> data) HVD_EXCLUDES(mutex_);
  void disarm();
  // Sends what waits, at most until the deadline. After this nothing is looked after any more.
  void stop(Deadline deadline);

 private:
  NetThread(Mirror& mirror, const shm::Job& job, NetThreadHost& host);
  void main(const std::stop_token& stop);
  bool nap();
  void watch(const std::stop_token& stop);
  void tend_mesh();
  void kick();
  Nanoseconds until_life_sign() const;

  Mirror& mirror_;
  const shm::Job& job_;
  NetThreadHost& host_;
  UniqueFd event_;
  std::atomic<bool> is_armed_{false};
  Mutex mutex_;
  std::vector<pollfd> data_ HVD_GUARDED_BY(mutex_);
  uint64_t pumps_seen_ = 0;
  bool has_tended_ = false;  // the mesh, since a sleeper was told
  TimePoint next_life_sign_{};
  std::jthread thread_;  // last
};

}  // namespace hvd::mirror
