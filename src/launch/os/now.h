// now.h - the time, for the parts of the launcher that act. What decides takes it as a parameter.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace hvd::launch {

inline TimePoint now() { return Clock::steady().now(); }

// Since 1970, for those who compare it with other hosts' or write it down.
inline int64_t wall_clock_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace hvd::launch
