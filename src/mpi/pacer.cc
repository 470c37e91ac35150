#include "mpi/pacer.h"

#include <algorithm>

namespace hvd::mpi {

int Pacer::descriptor() {
  const MutexLock lock(mutex_);
  const TimePoint now = std::chrono::steady_clock::now();
  const bool moved = moved_.exchange(false, std::memory_order_relaxed);
  if (moved) span_ = kShortest;
  if (moved || now >= next_) {
    next_ = now + span_;
    timer_.set(next_);
    span_ = std::min(span_ * 2, kLongest);
  }
  return timer_.descriptor();
}

}  // namespace hvd::mpi
