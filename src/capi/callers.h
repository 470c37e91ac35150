// callers.h - which threads are inside a call right now, so that shutdown can wait for them.
// A call costs two plain stores to a line of its own thread. The fence that this needs is made by
// the side that waits (membarrier); where the kernel has none, every call makes one itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cpu.h"

namespace hvd::capi {

// One per thread that ever called; kept and reused, never freed.
struct alignas(64) CallerSlot {
  std::atomic<uint32_t> depth{0};  // calls inside each other: a callback may call
  std::atomic<bool> in_use{false};
  CallerSlot* next = nullptr;
};

class Callers {
 public:
  Callers();

  CallerSlot& enter() {
    CallerSlot& slot = mine();
    const uint32_t depth = slot.depth.load(std::memory_order_relaxed) + 1;
    if (has_membarrier_) {
      slot.depth.store(depth, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      slot.depth.exchange(depth, std::memory_order_seq_cst);
    }
    return slot;
  }
  static void leave(CallerSlot& slot) {
    slot.depth.store(slot.depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  // Blocks until every call that may have begun before is over, except those of the calling thread.
  void wait_for_all();
  // In a child of fork(): only the forking thread is left.
  void forget_all();

 private:
  CallerSlot& mine() { return HVD_LIKELY(own_slot_ != nullptr) ? *own_slot_ : add_slot(); }
  CallerSlot& add_slot();

  // Read with a single instruction.
  __attribute__((tls_model("initial-exec"))) static constinit thread_local CallerSlot* own_slot_;

  std::atomic<CallerSlot*> first_{nullptr};
  bool has_membarrier_ = false;
};

}  // namespace hvd::capi
