// stream_scratch.h - device memory that one stream uses for one work after the other: what a later
// work puts into the stream runs behind what an earlier one did there, so nobody waits. The
// device's context must be current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/engine_role.h"
#include "base/status.h"
#include "device/stream.h"

namespace hvd::collective::gpu {

class StreamScratch {
 public:
  explicit StreamScratch(int device) : device_(device) {}
  StreamScratch(StreamScratch&& other) noexcept
      : device_(other.device_),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  StreamScratch& operator=(StreamScratch&&) = delete;
  ~StreamScratch() { free(); }

  // At least so long. One that is too short is replaced, for which the driver waits for the device.
  Result<std::byte*> reserve(uint64_t bytes) HVD_REQUIRES(engine_role) {
    if (bytes_ >= bytes) return data_;
    free();
    HVD_TRY_ASSIGN(void* const memory, device::alloc_memory(device_, bytes));
    data_ = static_cast<std::byte*>(memory);
    bytes_ = bytes;
    return data_;
  }
  // The stream hangs, and would hang whoever frees its memory: it is left.
  void forget() {
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  void free() {
    if (data_ != nullptr) (void)device::free_memory(data_);
    forget();
  }

  int device_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace hvd::collective::gpu
