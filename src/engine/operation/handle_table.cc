#include "engine/operation/handle_table.h"

namespace hvd::engine {

Operation& HandleTable::create() {
  MutexLock lock(mutex_);
  if (free_.empty()) {
    entries_.emplace_back();
    entries_.back().op = std::make_unique<Operation>();
    entries_.back().generation = first_generation_;
    free_.push_back(static_cast<uint32_t>(entries_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Entry& entry = entries_[index];
  entry.in_use = true;
  ++entry.generation;
  entry.op->reset();
  entry.op->handle = static_cast<uint64_t>(entry.generation) << 32 | (index + 1);
  return *entry.op;
}

Operation* HandleTable::find(uint64_t handle) const {
  MutexLock lock(mutex_);
  return look_up(handle);
}

Operation* HandleTable::look_up(uint64_t handle) const {
  const size_t index = index_of(handle);
  if (index >= entries_.size()) return nullptr;
  const Entry& entry = entries_[index];
  const bool known = entry.in_use && entry.op->handle == handle && !entry.op->is_released;
  return known ? entry.op.get() : nullptr;
}

bool HandleTable::first_poll(Operation& op) {
  MutexLock lock(mutex_);
  return !std::exchange(op.was_polled, true);
}

bool HandleTable::release(uint64_t handle) {
  MutexLock lock(mutex_);
  Operation* op = look_up(handle);
  if (op == nullptr) return false;
  op->is_released = true;
  if (op->is_done() && !op->is_kept) recycle(*op);
  return true;
}

void HandleTable::completed(Operation& op, Keep keep) {
  MutexLock lock(mutex_);
  op.is_kept = keep == Keep::kYes;
  // Unless it is kept, the last touch of the operation by the engine: from here on a waiter may
  // release it.
  op.state.store(static_cast<uint32_t>(OperationState::kDone), std::memory_order_seq_cst);
  if (op.is_released && !op.is_kept) recycle(op);
}

void HandleTable::let_go(Operation& op) {
  MutexLock lock(mutex_);
  op.is_kept = false;
  if (op.is_released) recycle(op);
}

void HandleTable::discard(Operation& op) {
  MutexLock lock(mutex_);
  recycle(op);
}

void HandleTable::recycle(Operation& op) {
  const size_t index = index_of(op.handle);
  op.outputs.clear();
  op.copies.clear();
  op.slot.reset();
  entries_[index].in_use = false;
  free_.push_back(static_cast<uint32_t>(index));
}

}  // namespace hvd::engine
