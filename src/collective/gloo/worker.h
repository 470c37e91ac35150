// worker.h - a thread that runs one blocking call at a time, and a descriptor that tells when it is
// done. Only wait() blocks.
#pragma once

#include <condition_variable>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/engine_role.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/thread_annotations.h"

namespace hvd::collective::gloo {

class Worker {
 public:
  Worker();
  // Waits for the call that runs: end it first.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Only while it is idle.
  void start(std::function<Status()> call) HVD_REQUIRES(engine_role);
  bool is_idle() const { return !is_started_; }
  bool is_done() HVD_EXCLUDES(mutex_);
  // Of a call that is done; idle again.
  Status take() HVD_REQUIRES(engine_role) HVD_EXCLUDES(mutex_);
  // Until the call is done or the deadline has passed; true if it is done.
  bool wait(Deadline deadline) HVD_EXCLUDES(mutex_);
  // Readable while a result waits to be taken.
  int descriptor() const { return done_event_.get(); }

 private:
  void run(const std::stop_token& stop);

  const UniqueFd done_event_;
  bool is_started_ = false;
  Mutex mutex_;  // leaf
  std::condition_variable_any changed_;
  std::function<Status()> call_ HVD_GUARDED_BY(mutex_);
  bool is_done_ HVD_GUARDED_BY(mutex_) = false;
  Status result_ HVD_GUARDED_BY(mutex_);
  std::jthread thread_;  // from the first call on; last: it uses the others
};

}  // namespace hvd::collective::gloo
