// poll_set.h - one turn of an event loop: what to wait for, and what to do when it comes.
// One thread. Rebuilt for every turn, so that nobody has to take back what he waits for no longer.
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

#include "base/clock.h"

namespace hvd::launch {

class PollSet {
 public:
  void clear();
  // A negative descriptor is never ready.
  void watch(int fd, short events, std::function<void()> handler);
  // Wake at this time at the latest.
  void wake_by(TimePoint when);

  // Blocks until something is ready, a signal comes or the time is there; runs the handlers in the
  // order of watch().
  void wait();

 private:
  std::vector<pollfd> polled_;
  std::vector<std::function<void()>> handlers_;  // of polled_, by index
  TimePoint wake_at_ = TimePoint::max();
};

}  // namespace hvd::launch
