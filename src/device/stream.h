// stream.h - owners of what the driver hands out: streams, events, memory. Factories and calls need
// the device's context to be current (Current). Any thread; never blocks, apart from what gives out
// memory, which may take long, or frees it, which waits for the device.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"
#include "device/driver.h"

namespace hvd::device {

// A place in a stream. Events are kept for reuse when their owner goes.
class Event {
 public:
  Event() = default;
  static Result<Event> take(int device);
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    return *this;
  }
  ~Event();

  bool is_set() const { return handle_ != nullptr; }
  Status record(StreamHandle stream);
  // Work that is added to `stream` from now on starts after this.
  Status hold_back(StreamHandle stream) const;
  Result<bool> is_over() const;

 private:
  EventHandle handle_ = nullptr;
  int device_ = -1;
};

class Stream {
 public:
  // Does not wait for the null stream; of the highest priority.
  static Result<Stream> make(int device);
  Stream() = default;
  Stream(Stream&& other) noexcept { *this = std::move(other); }
  Stream& operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    return *this;
  }
  ~Stream();

  bool is_set() const { return handle_ != nullptr; }
  StreamHandle handle() const { return handle_; }
  int device() const { return device_; }
  // Either may be host memory; pageable host memory makes the driver block.
  Status copy(void* to, const void* from, size_t bytes) const;
  Status zero(void* to, size_t bytes) const;
  // Calls `function` in a thread of the driver, in stream order. It must not call the driver.
  Status then(void (*function)(void*), void* argument) const;
  Result<bool> is_idle() const;

 private:
  StreamHandle handle_ = nullptr;
  int device_ = -1;
};

// Host memory that devices reach without the processor.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  static Result<PinnedMemory> make(size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Memory of a device for results whose size is known only after negotiation. The driver waits for
// the device when it is freed.
Result<void*> alloc_memory(int device, size_t bytes);
// False: it does not come from alloc_memory().
bool free_memory(void* data);

}  // namespace hvd::device
