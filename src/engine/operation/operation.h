// operation.h - one submission on its way through the engine.
// Thread: filled by the submitter under the submit lock, then owned by whoever holds the engine
// role until `state` says done (release), then read by the waiter (acquire).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/work.h"
#include "control/order.h"
#include "device/use.h"
#include "engine/operation/cached_operation.h"
#include "engine/operation/submission.h"

namespace hvd::engine {

// A name that is cached, in flight, or both. Its place in the table never moves.
struct NameState {
  std::string name;
  uint64_t hash = 0;
  // Set at submission (submit lock), cleared at completion (engine role).
  std::atomic<bool> in_flight{false};
  CachedPtr slot;  // of the operation that has this tensor alone; submit lock
};

struct FreeDeleter {
  void operator()(void* data) const {
    if (!device::free_memory(data)) std::free(data);
  }
};

struct Output {
  std::vector<int64_t> shape;
  std::vector<int32_t> received_splits;
  void* data = nullptr;
  size_t bytes = 0;
  std::unique_ptr<void, FreeDeleter>
      owned;  // when neither the caller nor its allocator gave memory
};

struct Buffer {
  const void* input = nullptr;
  void* output = nullptr;
  AllocateFn allocate = nullptr;
  void* allocate_context = nullptr;
};

class Channel;

enum class OperationState : uint32_t { kPending = 0, kDone = 1 };

struct Operation : control::LocalOperation {
  // from the submission
  wire::Kind kind = wire::Kind::kAllreduce;
  std::vector<Buffer> buffers;
  CachedPtr slot;                          // null: negotiated with a full message
  std::unique_ptr<wire::Request> request;  // when slot is null
  NameState* name = nullptr;               // of a single named tensor
  std::vector<NameState*> names;           // of a named group
  bool is_unnamed = false;
  uint64_t unnamed_number = 0;  // which unnamed one of its kind; for display
  bool needs_background = false;
  bool waiter_only = false;
  CallbackFn on_complete = nullptr;
  void* callback_context = nullptr;

  // on its way
  Channel* channel = nullptr;
  uint64_t handle = 0;
  uint32_t flight = 0;  // entry in the ring of last operations
  uint64_t bytes = 0;
  collective::Work work;
  device::Use use;                                   // where its buffers lie, if not in host memory
  std::vector<std::unique_ptr<std::byte[]>> copies;  // inputs that overlap their output
  bool is_shadow = false;  // stands in for a rank that has joined; nobody waits for it
  bool is_traced = false;
  // Holds more than a plain operation does: requests, names, outputs, a failure.
  bool is_used_up = false;

  // result
  std::atomic<uint32_t> state{0};  // OperationState
  Status status;
  std::vector<Output> outputs;
  int32_t number = -1;                  // join: last rank; process set add: id
  std::optional<int32_t> existing_set;  // process set add: failed, because this one has the ranks

  // handle bookkeeping, guarded by the handle table
  bool was_polled = false;
  bool is_released = false;
  bool is_kept = false;  // a callback is using it

  bool is_done() const {
    return state.load(std::memory_order_acquire) == static_cast<uint32_t>(OperationState::kDone);
  }
  // Ready for another submission. What a plain repeated allreduce leaves behind is left alone.
  void reset();

 private:
  void reset_thoroughly();
};

}  // namespace hvd::engine
