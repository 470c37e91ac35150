#include "launch/os/poll_set.h"

#include <algorithm>

namespace hvd::launch {

void PollSet::clear() {
  polled_.clear();
  handlers_.clear();
  wake_at_ = TimePoint::max();
}

void PollSet::watch(int fd, short events, std::function<void()> handler) {
  if (fd < 0) return;
  polled_.push_back({.fd = fd, .events = events, .revents = 0});
  handlers_.push_back(std::move(handler));
}

void PollSet::wake_by(TimePoint when) { wake_at_ = std::min(wake_at_, when); }

void PollSet::wait() {
  int timeout = -1;
  if (wake_at_ != TimePoint::max()) {
    // Rounded up: waking too early would spin until the time is there.
    const Nanoseconds left = Deadline::at(wake_at_).remaining(std::chrono::hours(24));
    timeout = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }
  const int ready = ::poll(polled_.data(), polled_.size(), timeout);
  for (size_t i = 0; ready > 0 && i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) handlers_[i]();
  }
}

}  // namespace hvd::launch
