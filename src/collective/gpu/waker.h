// waker.h - wakes the rank's engine from a thread of the driver, when a stream gets to a place.
// Outlives the engine where a stream is late. Any thread; the driver's only through wake().
#pragma once

#include <memory>

#include "base/thread_annotations.h"
#include "device/stream.h"
#include "shm/job.h"

namespace hvd::collective::gpu {

class Waker {
 public:
  explicit Waker(shm::Job& job) : job_(&job) {}
  // The job goes: nobody is woken any more.
  void forget_job() {
    const MutexLock lock(mutex_);
    job_ = nullptr;
  }
  // Whoever steps the engine looks again when the stream has got here.
  static Status wake_after(const std::shared_ptr<Waker>& self, const device::Stream& stream) {
    auto held = std::make_unique<std::shared_ptr<Waker>>(self);  // the second owner is the stream
    HVD_TRY(stream.then(run, held.get()));
    (void)held.release();
    return Status::ok();
  }

 private:
  static void run(void* argument) {
    const std::unique_ptr<std::shared_ptr<Waker>> held(
        static_cast<std::shared_ptr<Waker>*>(argument));
    (*held)->wake();
  }
  void wake() {
    const MutexLock lock(mutex_);
    if (job_ == nullptr) return;
    job_->wake(job_->rank());
    job_->wake_background(job_->rank());
  }

  Mutex mutex_;
  shm::Job* job_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd::collective::gpu
