// driver_api.h - the driver's functions that we call, declared by us: no CUDA is needed to build.
// Names, arguments and results as in libcuda.so.1; handles are opaque pointers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd::device {

using Context = void*;
using StreamHandle = void*;
using EventHandle = void*;
using DevicePointer = unsigned long long;  // the driver's own type, of 64 bits

inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotReady = 600;
inline constexpr int kCaptureImplicit = 906;  // the null stream, while another one is captured
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr int kAttributeDeviceOrdinal = 9;
inline constexpr int kCaptureRelaxed = 2;

// X(member, symbol, type)
#define HVD_DRIVER_FUNCTIONS(X)                                                           \
  X(init, "cuInit", int (*)(unsigned))                                                    \
  X(driver_version, "cuDriverGetVersion", int (*)(int*))                                  \
  X(error_name, "cuGetErrorName", int (*)(int, const char**))                             \
  X(error_text, "cuGetErrorString", int (*)(int, const char**))                           \
  X(device_count, "cuDeviceGetCount", int (*)(int*))                                      \
  X(device_get, "cuDeviceGet", int (*)(int*, int))                                        \
  X(device_name, "cuDeviceGetName", int (*)(char*, int, int))                             \
  X(pci_bus_id, "cuDeviceGetPCIBusId", int (*)(char*, int, int))                          \
  X(push_context, "cuCtxPushCurrent_v2", int (*)(Context))                                \
  X(pop_context, "cuCtxPopCurrent_v2", int (*)(Context*))                                 \
  X(retain_primary, "cuDevicePrimaryCtxRetain", int (*)(Context*, int))                   \
  X(priority_range, "cuCtxGetStreamPriorityRange", int (*)(int*, int*))                   \
  X(stream_create, "cuStreamCreateWithPriority", int (*)(StreamHandle*, unsigned, int))   \
  X(stream_destroy, "cuStreamDestroy_v2", int (*)(StreamHandle))                          \
  X(stream_query, "cuStreamQuery", int (*)(StreamHandle))                                 \
  X(stream_wait, "cuStreamWaitEvent", int (*)(StreamHandle, EventHandle, unsigned))       \
  X(stream_is_capturing, "cuStreamIsCapturing", int (*)(StreamHandle, int*))              \
  X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", int (*)(int*))            \
  X(event_create, "cuEventCreate", int (*)(EventHandle*, unsigned))                       \
  X(event_record, "cuEventRecord", int (*)(EventHandle, StreamHandle))                    \
  X(event_query, "cuEventQuery", int (*)(EventHandle))                                    \
  X(event_destroy, "cuEventDestroy_v2", int (*)(EventHandle))                             \
  X(mem_alloc, "cuMemAlloc_v2", int (*)(DevicePointer*, size_t))                          \
  X(mem_free, "cuMemFree_v2", int (*)(DevicePointer))                                     \
  X(host_alloc, "cuMemHostAlloc", int (*)(void**, size_t, unsigned))                      \
  X(host_free, "cuMemFreeHost", int (*)(void*))                                           \
  X(module_load, "cuModuleLoadData", int (*)(void**, const void*))                        \
  X(module_function, "cuModuleGetFunction", int (*)(void**, void*, const char*))          \
  X(launch_kernel, "cuLaunchKernel",                                                      \
    int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
            StreamHandle, void**, void**))                                                \
  X(copy, "cuMemcpyAsync", int (*)(DevicePointer, DevicePointer, size_t, StreamHandle))   \
  X(fill, "cuMemsetD8Async", int (*)(DevicePointer, unsigned char, size_t, StreamHandle)) \
  X(pointer_attribute, "cuPointerGetAttribute", int (*)(void*, int, DevicePointer))       \
  X(launch_host, "cuLaunchHostFunc", int (*)(StreamHandle, void (*)(void*), void*))

template <typename Function>
struct Typed {
  using Type = Function;
};

struct DriverApi {
#define HVD_MEMBER(member, symbol, ...) Typed<__VA_ARGS__>::Type member = nullptr;
  HVD_DRIVER_FUNCTIONS(HVD_MEMBER)
#undef HVD_MEMBER
};

}  // namespace hvd::device
