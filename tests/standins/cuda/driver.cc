// The functions of libcuda that src/device calls, by their names in the library. Results as there:
// 0 is success, 1 an invalid value, 2 no memory, 201 no context, 400 a bad handle, 600 not ready,
// 900 and 906 what a capture forbids.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/standins/cuda/control.h"
#include "tests/standins/cuda/state.h"
#include "tests/standins/cuda/stream.h"

namespace {

using namespace standin;  // NOLINT

struct Context {
  int device;
};
Context contexts[kMaxDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local std::vector<Context*> stack;

// 2: relaxed. In the other modes a question about progress spoils a capture, and is refused.
thread_local int capture_mode = 0;
bool spoils_capture() { return knobs().capturing != 0 && capture_mode != 2; }

Context* current() { return stack.empty() ? nullptr : stack.back(); }

EventPtr& event_of(void* handle) { return *static_cast<EventPtr*>(handle); }

// Takes the time that the knob says, or that of memory if it is longer. The copy engine of a GPU
// needs no processor; nor do we, where nobody looks at the bytes.
void copy_at_rate(void* target, const void* source, size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t rate = knobs().copy_mib_per_s;
  if (rate <= 0 || knobs().copy_engine == 0) std::memmove(target, source, bytes);
  if (rate <= 0) return;
  const double seconds = static_cast<double>(bytes) / (static_cast<double>(rate) * (1 << 20));
  std::this_thread::sleep_until(start +
                                std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

}  // namespace

Stream& standin::stream_of(void* handle) {
  if (handle != nullptr) return *static_cast<Stream*>(handle);
  return default_stream(current() == nullptr ? 0 : current()->device);
}

#define FAIL_IF_PLANNED() \
  if (const int planned = planned_failure(__func__); planned != 0) return planned

extern "C" {

int cuInit(unsigned) {
  FAIL_IF_PLANNED();
  return knobs().devices > 0 ? 0 : 100;
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuGetErrorName(int error, const char** text) {
  *text = error == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 0 ? "CUDA_SUCCESS"
                       : "CUDA_ERROR_STANDIN";
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == 2 ? "out of memory" : "an error that a test asked for";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(knobs().devices);
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= knobs().devices) return 101;
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Stand-in %d", device);
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  if (std::getenv("STANDIN_ONE_BUS_ID") != nullptr) device = 0;  // all ranks on one device
  // Ranks with CUDA_VISIBLE_DEVICES see different ones as number 0.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const int shown = visible != nullptr && *visible != '\0' ? std::atoi(visible) + device : device;
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", shown + 1);
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = current();
  return 0;
}
int cuCtxSetCurrent(void* context) {
  stack.clear();
  if (context != nullptr) stack.push_back(static_cast<Context*>(context));
  return 0;
}
int cuCtxPushCurrent_v2(void* context) {
  stack.push_back(static_cast<Context*>(context));
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (stack.empty()) return 201;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return 0;
}
int cuCtxGetDevice(int* device) {
  if (current() == nullptr) return 201;
  *device = current()->device;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  FAIL_IF_PLANNED();
  if (device < 0 || device >= knobs().devices) return 101;
  *context = &contexts[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return 0;
}

int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  FAIL_IF_PLANNED();
  if (current() == nullptr) return 201;
  *stream = new Stream(current()->device);
  ++counters().streams_alive;
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  --counters().streams_alive;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  stream_of(stream).synchronize();
  return 0;
}
int cuStreamQuery(void* stream) {
  if (spoils_capture()) return 900;
  return stream_of(stream).is_idle() ? 0 : 600;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  FAIL_IF_PLANNED();
  stream_of(stream).wait_for(event_of(event));
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  if (knobs().capturing != 0 && stream == nullptr) return 906;
  *status = knobs().capturing != 0 ? 1 : 0;
  return 0;
}
int cuStreamGetCtx(void* stream, void** context) {
  *context = &contexts[stream_of(stream).device()];
  return 0;
}

int cuEventCreate(void** event, unsigned) {
  FAIL_IF_PLANNED();
  if (current() == nullptr) return 201;
  *event = new EventPtr(std::make_shared<EventState>());
  ++counters().events_alive;
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  FAIL_IF_PLANNED();
  stream_of(stream).record(event_of(event));
  return 0;
}
int cuEventQuery(void* event) {
  FAIL_IF_PLANNED();
  ++counters().questions;
  if (spoils_capture()) return 900;
  return event_of(event)->is_complete() ? 0 : 600;
}
int cuEventSynchronize(void* event) {
  const RecordingPtr recording = event_of(event)->last_recording();
  if (recording == nullptr) return 0;
  if (!recording->is_complete()) ++counters().host_blocks;
  recording->wait();
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<EventPtr*>(event);
  --counters().events_alive;
  return 0;
}

int cuMemAlloc_v2(unsigned long long* pointer, size_t bytes) {
  FAIL_IF_PLANNED();
  if (current() == nullptr) return 201;
  void* memory = memory_of(current()->device).alloc(bytes);
  *pointer = reinterpret_cast<unsigned long long>(memory);
  return memory == nullptr ? 2 : 0;
}
int cuMemFree_v2(unsigned long long pointer) {
  auto* memory = reinterpret_cast<void*>(pointer);
  const int device = standin::device_of(memory);
  if (device < 0) return 1;
  synchronize_device(device);  // as the driver does
  return memory_of(device).free(memory) ? 0 : 1;
}
int cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  FAIL_IF_PLANNED();
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*pointer == nullptr) return 2;
  ++counters().pinned_alive;
  return 0;
}
int cuMemFreeHost(void* pointer) {
  std::free(pointer);
  --counters().pinned_alive;
  return 0;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  FAIL_IF_PLANNED();
  void* target = touchable(reinterpret_cast<void*>(to));
  const void* source = touchable(reinterpret_cast<void*>(from));
  stream_of(stream).enqueue([=] { copy_at_rate(target, source, bytes); });
  return 0;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
  void* target = touchable(reinterpret_cast<void*>(to));
  stream_of(stream).enqueue([=] { std::memset(target, value, bytes); });
  return 0;
}
int cuPointerGetAttribute(void* data, int attribute, unsigned long long pointer) {
  const int device = standin::device_of(reinterpret_cast<void*>(pointer));
  if (device < 0) return 1;
  if (attribute == 1) *static_cast<void**>(data) = &contexts[device];
  if (attribute == 2) *static_cast<unsigned*>(data) = 2;
  if (attribute == 9) *static_cast<int*>(data) = device;
  return 0;
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  FAIL_IF_PLANNED();
  stream_of(stream).enqueue([=] { function(argument); });
  return 0;
}

void standin_enqueue(void* stream, void (*work)(void*), void* argument) {
  stream_of(stream).enqueue([=] { work(argument); });
}
}
