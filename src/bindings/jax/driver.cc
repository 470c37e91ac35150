#include "bindings/jax/driver.h"

#include <pthread.h>

#include <chrono>

namespace hvd::jax {
namespace {

// A handle may be released, and its place used again, while it is waited for.
constexpr int64_t kSliceNanoseconds = 100'000'000;

constexpr std::chrono::seconds kLongestRest(1);

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

void Driver::stop() {
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  // In a forked child there is no such thread.
  rested_.wait_for(lock, kLongestRest, [this] { return !is_driving_; });
}

void Driver::run() {
  pthread_setname_np(pthread_self(), "hvd-jax-driver");
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return !handles_.empty() && !is_stopped_; });
    const hvd_handle handle = handles_.front();
    is_driving_ = true;
    lock.unlock();
    const hvd_status status = hvd_wait(handle, kSliceNanoseconds);
    lock.lock();
    is_driving_ = false;
    rested_.notify_all();
    if (status != HVD_TIMED_OUT) handles_.pop_front();
  }
}

}  // namespace hvd::jax
