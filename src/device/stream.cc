#include "device/stream.h"

#include <array>
#include <atomic>
#include <unordered_map>
#include <vector>

namespace hvd::device {
namespace {

const DriverApi& api() { return (*Driver::get())->api(); }
Status check(int code, std::string_view what) { return (*Driver::get())->check(code, what); }

// Events that nobody uses, by device. Never destroyed, like the driver.
struct EventStore {
  Mutex mutex;
  std::array<std::vector<EventHandle>, kMaxDevices> idle HVD_GUARDED_BY(mutex);
};
EventStore& event_store() {
  static auto* const store = new EventStore();
  return *store;
}

// What alloc_memory() has given out. `count` lets a process without any pay one load.
struct Outputs {
  std::atomic<size_t> count{0};  // relaxed: whoever frees memory has seen its allocation
  Mutex mutex;
  std::unordered_map<void*, int> device_of HVD_GUARDED_BY(mutex);
};
Outputs& outputs() {
  static auto* const all = new Outputs();
  return *all;
}

}  // namespace

Result<Event> Event::take(int device) {
  Event event;
  event.device_ = device;
  EventStore& store = event_store();
  {
    const MutexLock lock(store.mutex);
    auto& idle = store.idle[static_cast<size_t>(device)];
    if (!idle.empty()) {
      event.handle_ = idle.back();
      idle.pop_back();
      return event;
    }
  }
  HVD_TRY(check(api().event_create(&event.handle_, kEventDisableTiming), "cuEventCreate"));
  return event;
}

Event::~Event() {
  if (handle_ == nullptr) return;
  EventStore& store = event_store();
  const MutexLock lock(store.mutex);
  store.idle[static_cast<size_t>(device_)].push_back(handle_);
}

Status Event::record(StreamHandle stream) {
  return check(api().event_record(handle_, stream), "cuEventRecord");
}

Status Event::hold_back(StreamHandle stream) const {
  return check(api().stream_wait(stream, handle_, 0), "cuStreamWaitEvent");
}

Result<bool> Event::is_over() const {
  const int code = api().event_query(handle_);
  if (code == kNotReady) return false;
  HVD_TRY(check(code, "cuEventQuery"));
  return true;
}

Result<Stream> Stream::make(int device) {
  Stream stream;
  stream.device_ = device;
  int least = 0, greatest = 0;
  HVD_TRY(check(api().priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange"));
  HVD_TRY(check(api().stream_create(&stream.handle_, kStreamNonBlocking, greatest),
                "cuStreamCreateWithPriority"));
  return stream;
}

Stream::~Stream() {
  if (handle_ == nullptr) return;
  const auto current = Current::enter(device_);
  if (current) (void)api().stream_destroy(handle_);
}

Status Stream::copy(void* to, const void* from, size_t bytes) const {
  return check(api().copy(reinterpret_cast<DevicePointer>(to),
                          reinterpret_cast<DevicePointer>(from), bytes, handle_),
               "cuMemcpyAsync");
}

Status Stream::zero(void* to, size_t bytes) const {
  return check(api().fill(reinterpret_cast<DevicePointer>(to), 0, bytes, handle_),
               "cuMemsetD8Async");
}

Status Stream::then(void (*function)(void*), void* argument) const {
  return check(api().launch_host(handle_, function, argument), "cuLaunchHostFunc");
}

Result<bool> Stream::is_idle() const {
  const int code = api().stream_query(handle_);
  if (code == kNotReady) return false;
  HVD_TRY(check(code, "cuStreamQuery"));
  return true;
}

Result<PinnedMemory> PinnedMemory::make(size_t bytes) {
  PinnedMemory memory;
  void* data = nullptr;
  HVD_TRY(check(api().host_alloc(&data, bytes, kHostPortable), "cuMemHostAlloc"));
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

PinnedMemory::~PinnedMemory() {
  if (data_ != nullptr) (void)api().host_free(data_);
}

Result<void*> alloc_memory(int device, size_t bytes) {
  HVD_TRY_ASSIGN(const Current current, Current::enter(device));
  DevicePointer pointer = 0;
  HVD_TRY(check(api().mem_alloc(&pointer, bytes), "cuMemAlloc"));
  auto* const data = reinterpret_cast<void*>(pointer);
  Outputs& all = outputs();
  const MutexLock lock(all.mutex);
  all.device_of[data] = device;
  all.count.store(all.device_of.size(), std::memory_order_relaxed);
  return data;
}

bool free_memory(void* data) {
  Outputs& all = outputs();
  if (all.count.load(std::memory_order_relaxed) == 0) return false;
  int device = -1;
  {
    const MutexLock lock(all.mutex);
    const auto found = all.device_of.find(data);
    if (found == all.device_of.end()) return false;
    device = found->second;
    all.device_of.erase(found);
    all.count.store(all.device_of.size(), std::memory_order_relaxed);
  }
  const auto current = Current::enter(device);
  if (current) (void)api().mem_free(reinterpret_cast<DevicePointer>(data));
  return true;
}

}  // namespace hvd::device
