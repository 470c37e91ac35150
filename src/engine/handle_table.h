// handle_table.h - from public handles to operations. A handle is an index and a generation, so an old one is recognised.
// Thread-safe; never blocks for long.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_annotations.h"
#include "engine/operation.h"

namespace hvd::engine {

class HandleTable {
 public:
  // A fresh operation with its handle set.
  Operation& create() HVD_EXCLUDES(mutex_);
  // nullptr: unknown, released or from another time.
  Operation* find(uint64_t handle) const HVD_EXCLUDES(mutex_);
  // The first poll of an operation: true once.
  bool first_poll(Operation& op) HVD_EXCLUDES(mutex_);
  // The caller forgets it. It is recycled now if it is done, otherwise by completed().
  void release(Operation& op) HVD_EXCLUDES(mutex_);
  // After completion: recycles it if it was released before. Needs the engine role.
  void completed(Operation& op) HVD_EXCLUDES(mutex_);
  // Takes back an operation that was never submitted.
  void discard(Operation& op) HVD_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::unique_ptr<Operation> op;
    uint32_t generation = 0;
    bool in_use = false;
  };
  void recycle(Operation& op) HVD_REQUIRES(mutex_);
  static size_t index_of(uint64_t handle) { return static_cast<uint32_t>(handle) - 1; }

  mutable Mutex mutex_;
  std::vector<Entry> entries_ HVD_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ HVD_GUARDED_BY(mutex_);
};

}  // namespace hvd::engine
