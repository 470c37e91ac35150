// statistics.h - counters of one engine. Written by whoever holds the role or the submit lock; read
// by anybody, so atomic and relaxed: nothing is ordered by them.
#pragma once

#include <atomic>
#include <cstdint>

namespace hvd::engine {

class Counter {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct Statistics {
  Counter operations, bytes, failed_operations;
  Counter cache_hits, cache_misses;
  Counter small_operations, streamed_operations, shared_operations;
  Counter parks, late_rings, rescued_wakes, background_runs, stall_warnings;
};

}  // namespace hvd::engine
