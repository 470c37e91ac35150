// pacer.h - MPI has nothing to sleep on: whoever waits looks again and again. This says when, as a
// descriptor for poll(2): soon while bytes move, less and less often while none do. Any thread;
// never blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "net/timer.h"

namespace hvd::mpi {

class Pacer {
 public:
  static constexpr Nanoseconds kShortest = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLongest = std::chrono::milliseconds(2);

  explicit Pacer(net::Timer timer) : timer_(std::move(timer)) {}

  // Readable when it is time for the next look. Asking for it when that time has passed counts as a
  // look without success.
  int descriptor() HVD_EXCLUDES(mutex_);
  // Bytes have moved. Called often, by whoever drives.
  void progress() { moved_.store(true, std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  net::Timer timer_ HVD_GUARDED_BY(mutex_);
  TimePoint next_ HVD_GUARDED_BY(mutex_){};
  Nanoseconds span_ HVD_GUARDED_BY(mutex_) = kShortest;
  std::atomic<bool> moved_{false};  // says only "once more"; nothing is published with it
};

}  // namespace hvd::mpi
