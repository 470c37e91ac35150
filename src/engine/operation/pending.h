// pending.h - how many operations of this rank are on their way. Two counters with one writer
// each, so that neither submitting nor completing needs a read-modify-write. Reading: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/engine_role.h"

namespace hvd::engine {

class Pending {
 public:
  void note_submitted() HVD_REQUIRES(submit_side) {
    submitted_.store(submitted_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void note_finished() HVD_REQUIRES(engine_role) {
    finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t submitted(std::memory_order order = std::memory_order_relaxed) const {
    return submitted_.load(order);
  }
  uint64_t finished() const { return finished_.load(std::memory_order_relaxed); }
  uint64_t count() const { return submitted() - finished(); }

  // Those that nobody waits for: the background thread must drive them.
  void add_background() { background_.fetch_add(1, std::memory_order_relaxed); }
  void remove_background() { background_.fetch_sub(1, std::memory_order_relaxed); }
  bool any_background(std::memory_order order = std::memory_order_relaxed) const {
    return background_.load(order) != 0;
  }

 private:
  std::atomic<uint64_t> submitted_{0}, finished_{0};
  std::atomic<uint32_t> background_{0};
};

}  // namespace hvd::engine
