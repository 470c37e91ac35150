#include "launch/output/flush.h"

#include <poll.h>

#include <csignal>
#include <vector>

namespace hvd::launch {

void flush_all(Terminal& terminal, const Signals* signals, Deadline deadline) {
  terminal.flush_some();
  while (terminal.has_pending() && !deadline.passed()) {
    std::vector<pollfd> polled;
    for (Console* console : {&terminal.out(), &terminal.err()}) {
      if (console->has_pending()) polled.push_back({console->poll_fd(), POLLOUT, 0});
    }
    if (signals != nullptr) polled.push_back({signals->poll_fd(), POLLIN, 0});
    const Nanoseconds left = deadline.remaining(std::chrono::hours(1));
    ::poll(polled.data(), polled.size(),
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    terminal.flush_some();
    while (signals != nullptr) {
      const auto event = signals->next();
      if (!event) break;
      if (event->number == SIGINT || event->number == SIGTERM || event->number == SIGHUP) return;
    }
  }
}

}  // namespace hvd::launch
