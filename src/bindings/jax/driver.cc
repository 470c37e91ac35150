#include "bindings/jax/driver.h"

#include <pthread.h>

namespace hvd::jax {
namespace {

// A handle may be released, and its place used again, while it is waited for.
constexpr int64_t kSliceNanoseconds = 100'000'000;

}  // namespace

Driver& Driver::instance() {
  static Driver* const the_driver = new Driver;
  return *the_driver;
}

void Driver::drive(hvd_handle handle) {
  if (handle == 0) return;
  {
    const std::lock_guard lock(mutex_);
    handles_.push_back(handle);
    if (!thread_.joinable()) thread_ = std::jthread([this] { run(); });
  }
  posted_.notify_one();
}

void Driver::run() {
  pthread_setname_np(pthread_self(), "hvd-jax-driver");
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return !handles_.empty(); });
    const hvd_handle handle = handles_.front();
    lock.unlock();
    const hvd_status status = hvd_wait(handle, kSliceNanoseconds);
    lock.lock();
    if (status != HVD_TIMED_OUT) handles_.pop_front();
  }
}

}  // namespace hvd::jax
