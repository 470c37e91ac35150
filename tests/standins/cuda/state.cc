#include "tests/standins/cuda/state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/standins/cuda/control.h"

namespace standin {
namespace {

struct Failure {
  int64_t left;
  int code;
};
std::mutex failures_mutex;
std::map<std::string, Failure>& failures() {
  static auto* all = new std::map<std::string, Failure>();
  return *all;
}
std::atomic<bool> any_failure{false};

void read_number(const char* name, std::atomic<int64_t>& knob) {
  if (const char* text = std::getenv(name)) knob = std::atoll(text);
}

std::atomic<int64_t>* find_number(const std::string& name) {
  Knobs& k = knobs();
  Counters& c = counters();
  const std::map<std::string, std::atomic<int64_t>*> table = {
      {"devices", &k.devices},
      {"item_delay_us", &k.item_delay_us},
      {"copy_mib_per_s", &k.copy_mib_per_s},
      {"copy_engine", &k.copy_engine},
      {"capturing", &k.capturing},
      {"events_alive", &c.events_alive},
      {"streams_alive", &c.streams_alive},
      {"allocations_alive", &c.allocations_alive},
      {"pinned_alive", &c.pinned_alive},
      {"host_blocks", &c.host_blocks},
      {"items", &c.items},
      {"kernels", &c.kernels},
      {"questions", &c.questions}};
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Counters& counters() {
  static auto* all = new Counters();
  return *all;
}

Knobs& knobs() {
  static auto* all = [] {
    auto* k = new Knobs();
    read_number("STANDIN_DEVICES", k->devices);
    read_number("STANDIN_ITEM_DELAY_US", k->item_delay_us);
    read_number("STANDIN_COPY_MIB_PER_S", k->copy_mib_per_s);
    read_number("STANDIN_COPY_ENGINE", k->copy_engine);
    read_number("STANDIN_CAPTURING", k->capturing);
    if (const char* text = std::getenv("STANDIN_FAIL")) {  // function:nth:code
      const std::string all_of_it = text;
      const size_t first = all_of_it.find(':'), second = all_of_it.rfind(':');
      if (first != std::string::npos && second > first)
        standin_fail(all_of_it.substr(0, first).c_str(), std::atoll(text + first + 1),
                     std::atoi(text + second + 1));
    }
    return k;
  }();
  return *all;
}

int planned_failure(const char* function) {
  (void)knobs();
  if (!any_failure.load(std::memory_order_relaxed)) return 0;
  const std::lock_guard lock(failures_mutex);
  const auto found = failures().find(function);
  if (found == failures().end() || --found->second.left > 0) return 0;
  const int code = found->second.code;
  failures().erase(found);
  return code;
}

DeviceMemory::DeviceMemory() {
  const int file = ::memfd_create("standin-device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) std::abort();
  given_out_ = static_cast<std::byte*>(
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0));
  touchable_ = static_cast<std::byte*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
  ::close(file);
  if (given_out_ == MAP_FAILED || touchable_ == MAP_FAILED) std::abort();
  free_[0] = kBytes;
}

void* DeviceMemory::alloc(size_t bytes) {
  const size_t wanted = std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, length] = *it;
    if (length < wanted) continue;
    free_.erase(it);
    if (length > wanted) free_[offset + wanted] = length - wanted;
    used_[offset] = wanted;
    ++counters().allocations_alive;
    return given_out_ + offset;
  }
  return nullptr;
}

bool DeviceMemory::free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(pointer) - given_out_);
  const auto found = used_.find(offset);
  if (found == used_.end()) return false;
  auto here = free_.emplace(offset, found->second).first;
  used_.erase(found);
  if (const auto next = std::next(here);
      next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here != free_.begin()) {
    const auto before = std::prev(here);
    if (before->first + before->second == here->first) {
      before->second += here->second;
      free_.erase(here);
    }
  }
  --counters().allocations_alive;
  return true;
}

bool DeviceMemory::contains(const void* pointer) const {
  const auto* p = static_cast<const std::byte*>(pointer);
  return p >= given_out_ && p < given_out_ + kBytes;
}

bool DeviceMemory::find(const void* pointer, void*& base, size_t& bytes) {
  if (!contains(pointer)) return false;
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(pointer) - given_out_);
  auto after = used_.upper_bound(offset);
  if (after == used_.begin()) return false;
  --after;
  base = given_out_ + after->first;
  bytes = after->second;
  return offset < after->first + after->second;
}

namespace {
std::atomic<DeviceMemory*> memories[kMaxDevices] = {};
std::mutex memories_mutex;
}  // namespace

DeviceMemory& memory_of(int device) {
  std::atomic<DeviceMemory*>& place = memories[device];
  if (DeviceMemory* memory = place.load()) return *memory;
  const std::lock_guard lock(memories_mutex);
  if (place.load() == nullptr) place = new DeviceMemory();
  return *place.load();
}

int device_of(const void* pointer) {
  for (int device = 0; device < kMaxDevices; ++device) {
    const DeviceMemory* memory = memories[device].load();
    if (memory != nullptr && memory->contains(pointer)) return device;
  }
  return -1;
}

void* touchable(const void* pointer) {
  const int device = device_of(pointer);
  return device < 0 ? const_cast<void*>(pointer) : memory_of(device).view(pointer);
}

}  // namespace standin

extern "C" {

void standin_set(const char* knob, int64_t value) {
  if (auto* number = standin::find_number(knob)) *number = value;
}

int64_t standin_get(const char* name) {
  const auto* number = standin::find_number(name);
  return number == nullptr ? -1 : number->load();
}

void standin_fail(const char* function, int64_t nth, int code) {
  const std::lock_guard lock(standin::failures_mutex);
  standin::failures()[function] = {nth, code};
  standin::any_failure = true;
}

void* standin_view(const void* device_pointer) {
  const int device = standin::device_of(device_pointer);
  return device < 0 ? nullptr : standin::memory_of(device).view(device_pointer);
}
}
