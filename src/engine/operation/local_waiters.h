// local_waiters.h - threads of this rank that wait while another one has the role. Whoever has
// something for them, or gives the role back, looks whether there are any and wakes all; a waiter
// counts itself before it looks (both seq_cst), so one of the two sees the other. Thread: any.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/clock.h"
#include "base/cpu.h"
#include "shm/futex.h"

namespace hvd::engine {

class LocalWaiters {
 public:
  bool any() const { return waiters_.load(std::memory_order_seq_cst) != 0; }
  void notify() {
    event_.fetch_add(1, std::memory_order_seq_cst);
    shm::futex_wake(event_, INT_MAX);
  }
  void notify_if_any() {
    if (HVD_UNLIKELY(any())) notify();
  }

  // Sleeps until notify() or for `longest`, unless `is_needless()` says that there is nothing to
  // wait for. `begin()` is called between counting and looking.
  template <typename Begin, typename Needless>
  shm::FutexResult wait(const Begin& begin, const Needless& is_needless, Nanoseconds longest) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    begin();
    const uint32_t event = event_.load(std::memory_order_seq_cst);
    const auto result =
        is_needless() ? shm::FutexResult::kWoken : shm::futex_wait(event_, event, longest);
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    return result;
  }

 private:
  std::atomic<uint32_t> waiters_{0};
  std::atomic<uint32_t> event_{0};
};

}  // namespace hvd::engine
