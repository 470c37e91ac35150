// eventually.h - waits for what is true a moment later, such as that a thread which was joined is
// gone from /proc. Any thread.
#pragma once

#include <chrono>
#include <thread>

namespace hvd::testing {

// Whether `predicate` came true within the limit.
template <typename Predicate>
bool eventually(Predicate&& predicate, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace hvd::testing
