// state.h - what the stand-in for libcuda keeps: devices, memory, knobs. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace standin {

struct Counters {
  std::atomic<int64_t> events_alive{0}, streams_alive{0}, allocations_alive{0}, pinned_alive{0},
      host_blocks{0}, items{0}, kernels{0}, questions{0};
};
struct Knobs {
  std::atomic<int64_t> devices{2}, item_delay_us{0}, copy_mib_per_s{0}, copy_engine{0},
      capturing{0};
};
Counters& counters();
Knobs& knobs();

// 0, or the code that this call of `function` has to return.
int planned_failure(const char* function);

// Memory of one device: a file that is mapped twice. What callers get lies in the first mapping,
// which nobody may touch; streams use the second.
class DeviceMemory {
 public:
  static constexpr size_t kBytes = size_t{16} << 30;
  static constexpr size_t kAlignment = 512;

  DeviceMemory();
  void* alloc(size_t bytes);  // null: full
  bool free(void* pointer);
  bool contains(const void* pointer) const;
  void* view(const void* pointer) const {
    return touchable_ + (static_cast<const std::byte*>(pointer) - given_out_);
  }
  // The allocation around a pointer; false: none.
  bool find(const void* pointer, void*& base, size_t& bytes);

 private:
  std::byte* given_out_ = nullptr;
  std::byte* touchable_ = nullptr;
  std::mutex mutex_;
  std::map<size_t, size_t> used_, free_;  // offset -> bytes
};

inline constexpr int kMaxDevices = 8;
DeviceMemory& memory_of(int device);
// The device whose memory this is; -1: host.
int device_of(const void* pointer);
// Device memory as a stream sees it; host memory as it is.
void* touchable(const void* pointer);

}  // namespace standin
