// stream_scratch.h - device memory that one stream uses for one work after the other: what a later
// work puts into the stream runs behind what an earlier one did there, so nobody waits. Memory is
// given back with the object alone: the driver waits for the whole device when memory is freed,
// also for operations that wait for a peer, which may wait for us. The device's
// context must be current.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/engine_role.h"
#include "base/status.h"
#include "device/stream.h"

namespace hvd::collective::gpu {

class StreamScratch {
 public:
  explicit StreamScratch(int device) : device_(device) {}
  StreamScratch(StreamScratch&&) noexcept = default;
  StreamScratch& operator=(StreamScratch&&) = delete;
  ~StreamScratch() {
    for (void* block : blocks_) (void)device::free_memory(block);
  }

  // A work begins, and uses the memory of those before it.
  void restart() HVD_REQUIRES(engine_role) { used_ = 0; }
  // `bytes` is more than 0. Stays as it is until restart().
  Result<std::byte*> take(uint64_t bytes) HVD_REQUIRES(engine_role) {
    if (used_ + bytes > capacity_) {
      const uint64_t wanted = std::max(bytes, 2 * capacity_);  // so that few blocks are left behind
      HVD_TRY_ASSIGN(void* const block, device::alloc_memory(device_, wanted));
      blocks_.push_back(block);
      capacity_ = wanted;
      used_ = 0;
    }
    std::byte* const taken = static_cast<std::byte*>(blocks_.back()) + used_;
    used_ = std::min(align_up(used_ + bytes, kAlignment), capacity_);
    return taken;
  }
  // The stream hangs, and would hang whoever frees its memory: it is left.
  void forget() {
    blocks_.clear();
    capacity_ = used_ = 0;
  }

 private:
  static constexpr uint64_t kAlignment = 256;

  int device_;
  std::vector<void*> blocks_;  // the last one is in use
  uint64_t capacity_ = 0, used_ = 0;
};

}  // namespace hvd::collective::gpu
