// timer.h - a moment in time as a descriptor, so that whoever sleeps in epoll wakes for it. One
// thread at a time; never blocks.
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace hvd::net {

class Timer {
 public:
  static Result<Timer> create();

  int descriptor() const { return fd_.get(); }
  // Readable from then on until set again; TimePoint::max(): never.
  void set(TimePoint when);

 private:
  UniqueFd fd_;
  TimePoint when_ = TimePoint::max();
};

}  // namespace hvd::net
