#include "engine/operation/operation.h"

#include "base/cpu.h"

namespace hvd::engine {

void Operation::reset() {
  if (HVD_UNLIKELY(is_used_up)) reset_thoroughly();
  name = nullptr;
  is_unnamed = needs_background = waiter_only = is_shadow = is_traced = false;
  on_complete = nullptr;
  handle = 0;
  number = -1;
  was_polled = is_released = is_kept = false;
  state.store(static_cast<uint32_t>(OperationState::kPending), std::memory_order_relaxed);
}

void Operation::reset_thoroughly() {
  is_used_up = false;
  buffers.clear();
  slot.reset();
  request.reset();
  names.clear();
  callback_context = nullptr;
  channel = nullptr;
  work.reset(collective::WorkKind::kReduce);
  copies.clear();
  use = device::Use{};
  status = Status::ok();
  outputs.clear();
}

}  // namespace hvd::engine
