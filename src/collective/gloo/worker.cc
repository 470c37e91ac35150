#include "collective/gloo/worker.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include <exception>
#include <utility>

namespace hvd::collective::gloo {
namespace {

Status run_guarded(const std::function<Status()>& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return unknown_error(error.what());  // no memory for a copy
  }
}

}  // namespace

Worker::Worker() : done_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Worker::~Worker() = default;

void Worker::start(std::function<Status()> call) {
  is_started_ = true;
  {
    MutexLock lock(mutex_);
    call_ = std::move(call);
  }
  changed_.notify_all();
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

bool Worker::is_done() {
  MutexLock lock(mutex_);
  return is_done_;
}

Status Worker::take() {
  uint64_t count = 0;
  (void)!::read(done_event_.get(), &count, sizeof count);
  is_started_ = false;
  MutexLock lock(mutex_);
  is_done_ = false;
  return std::exchange(result_, Status::ok());
}

bool Worker::wait(Deadline deadline) HVD_NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.when(),
                             [this]() HVD_NO_THREAD_SAFETY_ANALYSIS { return is_done_; });
}

void Worker::run(const std::stop_token& stop) HVD_NO_THREAD_SAFETY_ANALYSIS {
  ::pthread_setname_np(::pthread_self(), "hvd-gloo");
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop,
                       [this]() HVD_NO_THREAD_SAFETY_ANALYSIS { return call_ != nullptr; })) {
    const auto call = std::exchange(call_, nullptr);
    lock.unlock();
    Status result = run_guarded(call);
    lock.lock();
    result_ = std::move(result);
    is_done_ = true;
    changed_.notify_all();
    const uint64_t one = 1;
    (void)!::write(done_event_.get(), &one, sizeof one);
  }
}

}  // namespace hvd::collective::gloo
