// driver.h - the thread that makes operations advance whose handlers have returned.
//
// Operations are submitted for waiters alone: a handler that waits for a moment drives its own
// operation, and no other thread wakes up for it. What outlives the handler is waited for here.
// Waiting drives every operation of the process, and callbacks come for each when it is done, in
// any order: it is no matter which handle is at the head.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "horovod/hvd.h"

namespace hvd::jax {

// Thread: any.
class Driver {
 public:
  // Never destroyed: operations may end while the process does.
  static Driver& instance();

  // Drives until the operation is complete. 0 is none.
  void drive(hvd_handle handle);

  // Before the process ends: drives nothing any more. Returns when the thread has let go of what it
  // drove, or after a moment.
  void stop();

 private:
  Driver() = default;
  void run();

  std::mutex mutex_;
  std::condition_variable posted_, rested_;
  std::deque<hvd_handle> handles_;
  bool is_driving_ = false, is_stopped_ = false;
  std::jthread thread_;
};

}  // namespace hvd::jax
