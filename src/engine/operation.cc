#include "engine/operation.h"

namespace hvd::engine {

void Operation::reset() {
  buffers.clear();
  slot.reset();
  request.reset();
  name = nullptr;
  names.clear();
  is_unnamed = needs_background = waiter_only = false;
  on_complete = nullptr;
  callback_context = nullptr;
  handle = 0;
  channel = nullptr;
  work.reset(native::WorkKind::kReduce);
  copies.clear();
  is_shadow = is_traced = false;
  state.store(static_cast<uint32_t>(OperationState::kPending), std::memory_order_relaxed);
  status = Status::ok();
  outputs.clear();
  number = -1;
  was_polled = is_released = is_kept = false;
}

}  // namespace hvd::engine
