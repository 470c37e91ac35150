// handle_table.h - from public handles to operations. A handle is an index and a generation, so an
// old one is recognised. Thread-safe; never blocks for long.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_annotations.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

class HandleTable {
 public:
  // Handles of different engines of a process differ in their generations.
  explicit HandleTable(uint64_t engine_number)
      : first_generation_(static_cast<uint32_t>(engine_number) << 20) {}

  // A fresh operation with its handle set.
  Operation& create() HVD_EXCLUDES(mutex_);
  // nullptr: unknown, released or from another time.
  Operation* find(uint64_t handle) const HVD_EXCLUDES(mutex_);
  // The first poll of an operation: true once.
  bool first_poll(Operation& op) HVD_EXCLUDES(mutex_);
  // The caller forgets it: false if it is unknown. It is recycled now if it is done, otherwise when
  // it completes.
  bool release(uint64_t handle) HVD_EXCLUDES(mutex_);
  // It is done; recycled if it was released before, unless it is kept for a callback until
  // let_go(). Engine role.
  enum class Keep { kNo, kYes };
  void completed(Operation& op, Keep keep = Keep::kNo) HVD_EXCLUDES(mutex_);
  void let_go(Operation& op) HVD_EXCLUDES(mutex_);
  // Takes back an operation that was never submitted.
  void discard(Operation& op) HVD_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::unique_ptr<Operation> op;
    uint32_t generation = 0;
    bool in_use = false;
  };
  void recycle(Operation& op) HVD_REQUIRES(mutex_);
  Operation* look_up(uint64_t handle) const HVD_REQUIRES(mutex_);
  static size_t index_of(uint64_t handle) { return static_cast<uint32_t>(handle) - 1; }

  const uint32_t first_generation_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ HVD_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd::engine
