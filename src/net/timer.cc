#include "net/timer.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace hvd::net {

Result<Timer> Timer::create() {
  Timer timer;
  timer.fd_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.fd_.valid()) return errno_status("timer", errno);
  return timer;
}

void Timer::set(TimePoint when) {
  if (when == when_) return;
  when_ = when;
  itimerspec spec{};
  if (when != TimePoint::max()) {
    // steady_clock is CLOCK_MONOTONIC. Zero would disarm it.
    const int64_t count = std::max<int64_t>(
        1, std::chrono::duration_cast<Nanoseconds>(when.time_since_epoch()).count());
    spec.it_value = {static_cast<time_t>(count / 1'000'000'000),
                     static_cast<long>(count % 1'000'000'000)};
  }
  const int rc = timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  HVD_ASSERT(rc == 0, "the descriptor is a timer and the time is valid");
}

}  // namespace hvd::net
