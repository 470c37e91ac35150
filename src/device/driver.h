// driver.h - the driver of the GPUs, loaded when it is first asked for. A machine without one pays
// for nothing until then. Any thread; never blocks, apart from the first call, which loads a
// library and makes contexts.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/device.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "device/driver_api.h"

namespace hvd::device {

inline constexpr int kMaxDevices = 64;

class Driver {
 public:
  // The one of this process. PRECONDITION_ERROR: there is none, or it has no devices; the text says
  // what was tried.
  static Result<Driver*> get();
  // Loads another one, for tests and for people who ask; HOROVOD_CUDA_LIB names the file.
  static Result<std::unique_ptr<Driver>> load(const Environment& environment);

  const DriverApi& api() const { return api_; }
  int device_count() const { return device_count_; }
  int version() const { return version_; }  // 12040: CUDA 12.4
  const std::string& path() const { return path_; }
  // OK, or "cuMemAlloc_v2: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  Status check(int code, std::string_view what) const;
  // The primary context of a device; kept until the process ends.
  Result<Context> context_of(int device);
  // "0000:01:00.0"
  Result<std::string> bus_id(int device) const;
  Result<std::string> name(int device) const;
  // The device that a pointer belongs to; -1: host memory.
  int device_of(const void* pointer) const;

 private:
  Driver() = default;

  DriverApi api_;
  int device_count_ = 0;
  int version_ = 0;
  std::string path_;
  Mutex mutex_;
  std::array<Context, kMaxDevices> contexts_ HVD_GUARDED_BY(mutex_) = {};
};

// Makes the context of a device current in this thread, until the end of the scope. Calls in it do
// not spoil a CUDA graph that the program is capturing meanwhile, in this thread or another one.
class Current {
 public:
  static Result<Current> enter(int device);
  Current(Current&& other) noexcept : driver_(other.driver_), mode_(other.mode_) {
    other.driver_ = nullptr;
  }
  Current& operator=(Current&&) = delete;
  ~Current() {
    if (driver_ == nullptr) return;
    (void)driver_->api().exchange_capture_mode(&mode_);
    (void)driver_->api().pop_context(nullptr);
  }

 private:
  Current(Driver* driver, int mode) : driver_(driver), mode_(mode) {}
  Driver* driver_;
  int mode_;  // of captures, as it was before
};

}  // namespace hvd::device
