// device.h - where a buffer lives. Pure; any thread.
#pragma once

#include <cstdint>

namespace hvd {

enum class DeviceKind : uint8_t { kHost, kGpu };

struct Device {
  DeviceKind kind = DeviceKind::kHost;
  int32_t index = -1;  // which one of its kind; -1: host memory has no numbers

  friend bool operator==(const Device&, const Device&) = default;
};

// The number of the public interface: -1 is host memory.
inline Device device_of(int32_t number) {
  return number < 0 ? Device{} : Device{DeviceKind::kGpu, number};
}

}  // namespace hvd
