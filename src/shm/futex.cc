#include "shm/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace hvd::shm {

FutexResult futex_wait(std::atomic<uint32_t>& word, uint32_t expected, Nanoseconds span) {
  const auto ns = span.count();
  timespec timeout{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
  return rc != 0 && errno == ETIMEDOUT ? FutexResult::kTimedOut : FutexResult::kWoken;
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace hvd::shm
