// A device plug-in for the CPU builds of TensorFlow: "GPU" devices on the stand-in driver. Compiled
// by tensorflow_gpu.py against the headers of the installed release; TensorFlow loads it as it
// loads the plug-ins of vendors.
//
// Honest where the driver is: memory that the host cannot touch, ordered streams. A stream of
// TensorFlow begins with the driver's handle, which is what libhorovod_tensorflow.so relies on.
// There is one kernel, Neg of float32, so that a program can make a tensor that is late.
#include <cstdint>
#include <cstring>
#include <string>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_tensor.h"
#include "tests/standins/cuda/control.h"

extern "C" {
int cuInit(unsigned);
int cuCtxPushCurrent_v2(void*);
int cuCtxPopCurrent_v2(void**);
int cuDevicePrimaryCtxRetain(void**, int);
int cuStreamCreateWithPriority(void**, unsigned, int);
int cuStreamDestroy_v2(void*);
int cuStreamSynchronize(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuEventDestroy_v2(void*);
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuMemFree_v2(unsigned long long);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemcpyAsync(unsigned long long, unsigned long long, size_t, void*);
int cuMemsetD8Async(unsigned long long, unsigned char, size_t, void*);
int cuLaunchHostFunc(void*, void (*)(void*), void*);
}

struct SP_Stream_st {
  void* handle;
};
struct SP_Event_st {
  void* handle;
};
struct SP_Timer_st {
  uint64_t nanoseconds = 0;
};

namespace {

using Pointer = unsigned long long;

class InContext {
 public:
  explicit InContext(int device) {
    void* context = nullptr;
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxPushCurrent_v2(context);
  }
  explicit InContext(const SP_Device* device) : InContext(device->ordinal) {}
  ~InContext() { cuCtxPopCurrent_v2(nullptr); }
};

void ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }
void answer(int code, TF_Status* status) {
  if (code == 0) return ok(status);
  TF_SetStatus(status, TF_INTERNAL, ("stand-in: code " + std::to_string(code)).c_str());
}
Pointer number(const void* pointer) { return reinterpret_cast<Pointer>(pointer); }

// ---- memory

void allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  const InContext context(device);
  Pointer pointer = 0;
  if (cuMemAlloc_v2(&pointer, size) != 0) pointer = 0;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = reinterpret_cast<void*>(pointer);
  memory->size = pointer == 0 ? 0 : size;
}
void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  const InContext context(device);
  cuMemFree_v2(number(memory->opaque));
  memory->opaque = nullptr;
  memory->size = 0;
}
void* host_allocate(const SP_Device* device, uint64_t size) {
  const InContext context(device);
  void* memory = nullptr;
  return cuMemHostAlloc(&memory, size, 0) == 0 ? memory : nullptr;
}
void host_deallocate(const SP_Device*, void* memory) { cuMemFreeHost(memory); }
void* no_unified(const SP_Device*, uint64_t) { return nullptr; }
void no_unified_free(const SP_Device*, void*) {}
TF_Bool no_statistics(const SP_Device*, SP_AllocatorStats*) { return 0; }
TF_Bool memory_usage(const SP_Device*, int64_t* free, int64_t* total) {
  *free = *total = int64_t{4} << 30;
  return 1;
}

// ---- streams and events

void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  const InContext context(device);
  *stream = new SP_Stream_st{nullptr};
  answer(cuStreamCreateWithPriority(&(*stream)->handle, 1, 0), status);
}
void destroy_stream(const SP_Device*, SP_Stream stream) {
  cuStreamDestroy_v2(stream->handle);
  delete stream;
}
void create_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                       TF_Status* status) {
  const InContext context(device);
  void* event = nullptr;
  cuEventCreate(&event, 2);
  cuEventRecord(event, other->handle);
  answer(cuStreamWaitEvent(dependent->handle, event, 0), status);
  cuEventDestroy_v2(event);
}
void stream_status(const SP_Device*, SP_Stream, TF_Status* status) { ok(status); }
void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  const InContext context(device);
  *event = new SP_Event_st{nullptr};
  answer(cuEventCreate(&(*event)->handle, 2), status);
}
void destroy_event(const SP_Device*, SP_Event event) {
  cuEventDestroy_v2(event->handle);
  delete event;
}
SE_EventStatus event_status(const SP_Device*, SP_Event event) {
  return cuEventQuery(event->handle) == 0 ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}
void record_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  const InContext context(device);
  answer(cuEventRecord(event->handle, stream->handle), status);
}
void wait_for_event(const SP_Device* const device, SP_Stream stream, SP_Event event,
                    TF_Status* const status) {
  const InContext context(device);
  answer(cuStreamWaitEvent(stream->handle, event->handle, 0), status);
}
void block_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
  answer(cuEventSynchronize(event->handle), status);
}
void block_until_done(const SP_Device*, SP_Stream stream, TF_Status* status) {
  answer(cuStreamSynchronize(stream->handle), status);
}
void synchronize_all(const SP_Device*, TF_Status* status) { ok(status); }

void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  *timer = new SP_Timer_st();
  ok(status);
}
void destroy_timer(const SP_Device*, SP_Timer timer) { delete timer; }
void touch_timer(const SP_Device*, SP_Stream, SP_Timer, TF_Status* status) { ok(status); }
uint64_t timer_nanoseconds(SP_Timer timer) { return timer->nanoseconds; }

// ---- copies

void copy(const SP_Device* device, SP_Stream stream, Pointer to, Pointer from, uint64_t size,
          TF_Status* status) {
  const InContext context(device);
  answer(cuMemcpyAsync(to, from, size, stream->handle), status);
}
void to_host(const SP_Device* device, SP_Stream stream, void* to, const SP_DeviceMemoryBase* from,
             uint64_t size, TF_Status* status) {
  copy(device, stream, number(to), number(from->opaque), size, status);
}
void to_device(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, const void* from,
               uint64_t size, TF_Status* status) {
  copy(device, stream, number(to->opaque), number(from), size, status);
}
void on_device(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to,
               const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  copy(device, stream, number(to->opaque), number(from->opaque), size, status);
}
void copy_now(const SP_Device* device, Pointer to, Pointer from, uint64_t size, TF_Status* status) {
  const InContext context(device);
  SP_Stream_st stream{nullptr};
  copy(device, &stream, to, from, size, status);
  cuStreamSynchronize(nullptr);
}
void to_host_now(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                 TF_Status* status) {
  copy_now(device, number(to), number(from->opaque), size, status);
}
void to_device_now(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from,
                   uint64_t size, TF_Status* status) {
  copy_now(device, number(to->opaque), number(from), size, status);
}
void on_device_now(const SP_Device* device, SP_DeviceMemoryBase* to,
                   const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
  copy_now(device, number(to->opaque), number(from->opaque), size, status);
}
void fill(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint8_t pattern,
          uint64_t size, TF_Status* status) {
  const InContext context(device);
  answer(cuMemsetD8Async(number(to->opaque), pattern, size, stream->handle), status);
}
void zero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint64_t size,
          TF_Status* status) {
  fill(device, stream, to, 0, size, status);
}
void no_fill32(const SP_Device*, SP_Stream, SP_DeviceMemoryBase*, uint32_t, uint64_t,
               TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "stand-in: memset32");
}

struct Callback {
  SE_StatusCallbackFn function;
  void* argument;
};
void run_callback(void* argument) {
  Callback* const callback = static_cast<Callback*>(argument);
  TF_Status* const status = TF_NewStatus();
  callback->function(callback->argument, status);
  TF_DeleteStatus(status);
  delete callback;
}
TF_Bool host_callback(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                      void* argument) {
  const InContext context(device);
  return cuLaunchHostFunc(stream->handle, &run_callback, new Callback{function, argument}) == 0;
}

// ---- the platform

void device_count(const SP_Platform*, int* count, TF_Status* status) {
  *count = static_cast<int>(standin_get("devices"));
  ok(status);
}
void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->hardware_name = "Stand-in";
  params->device->device_vendor = "tests";
  params->device->pci_bus_id = "0000:01:00.0";
  ok(status);
}
void destroy_device(const SP_Platform*, SP_Device*) {}
int32_t numa_node(const SP_Device*) { return 0; }
int64_t bandwidth(const SP_Device*) { return 0; }
double gflops(const SP_Device*) { return 0; }
void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  *params->device_fns = {SP_DEVICE_FNS_STRUCT_SIZE, nullptr, numa_node, bandwidth, gflops};
  ok(status);
}
void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}
void create_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status* status) {
  *params->stream_executor = {
      .struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
      .ext = nullptr,
      .allocate = allocate,
      .deallocate = deallocate,
      .host_memory_allocate = host_allocate,
      .host_memory_deallocate = host_deallocate,
      .unified_memory_allocate = no_unified,
      .unified_memory_deallocate = no_unified_free,
      .get_allocator_stats = no_statistics,
      .device_memory_usage = memory_usage,
      .create_stream = create_stream,
      .destroy_stream = destroy_stream,
      .create_stream_dependency = create_dependency,
      .get_stream_status = stream_status,
      .create_event = create_event,
      .destroy_event = destroy_event,
      .get_event_status = event_status,
      .record_event = record_event,
      .wait_for_event = wait_for_event,
      .create_timer = create_timer,
      .destroy_timer = destroy_timer,
      .start_timer = touch_timer,
      .stop_timer = touch_timer,
      .memcpy_dtoh = to_host,
      .memcpy_htod = to_device,
      .memcpy_dtod = on_device,
      .sync_memcpy_dtoh = to_host_now,
      .sync_memcpy_htod = to_device_now,
      .sync_memcpy_dtod = on_device_now,
      .block_host_for_event = block_for_event,
      .block_host_until_done = block_until_done,
      .synchronize_all_activity = synchronize_all,
      .mem_zero = zero,
      .memset = fill,
      .memset32 = no_fill32,
      .host_callback = host_callback,
  };
  ok(status);
}
void destroy_executor(const SP_Platform*, SP_StreamExecutor*) {}
void create_timer_fns(const SP_Platform*, SP_TimerFns* timer, TF_Status* status) {
  timer->nanoseconds = timer_nanoseconds;
  ok(status);
}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}
void destroy_platform(SP_Platform*) {}
void destroy_platform_fns(SP_PlatformFns*) {}

// ---- Neg

struct Negation {
  const float* from;
  float* to;
  size_t count;
};
void negate(void* argument) {
  Negation* const work = static_cast<Negation*>(argument);
  for (size_t i = 0; i < work->count; ++i) work->to[i] = -work->from[i];
  delete work;
}
void* create_neg(TF_OpKernelConstruction*) { return nullptr; }
void delete_neg(void*) {}
void compute_neg(void*, TF_OpKernelContext* context) {
  TF_Status* const status = TF_NewStatus();
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status);
  int64_t shape[8];
  const int ndim = TF_NumDims(input);
  for (int d = 0; d < ndim; ++d) shape[d] = TF_Dim(input, d);
  TF_Tensor* const output =
      TF_AllocateOutput(context, 0, TF_FLOAT, shape, ndim, TF_TensorByteSize(input), status);
  if (TF_GetCode(status) == TF_OK && TF_TensorByteSize(input) > 0) {
    standin_enqueue(TF_GetStream(context, status)->handle, &negate,
                    new Negation{static_cast<const float*>(standin_view(TF_TensorData(input))),
                                 static_cast<float*>(standin_view(TF_TensorData(output))),
                                 TF_TensorByteSize(input) / sizeof(float)});
  }
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
  TF_DeleteTensor(output);
  TF_DeleteTensor(input);
  TF_DeleteStatus(status);
}

}  // namespace

extern "C" void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  cuInit(0);
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "STANDIN";
  params->platform->type = "GPU";
  params->platform->supports_unified_memory = 0;
  params->platform->use_bfc_allocator = 1;
  params->platform->force_memory_growth = 1;
  *params->platform_fns = {.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
                           .ext = nullptr,
                           .get_device_count = device_count,
                           .create_device = create_device,
                           .destroy_device = destroy_device,
                           .create_device_fns = create_device_fns,
                           .destroy_device_fns = destroy_device_fns,
                           .create_stream_executor = create_executor,
                           .destroy_stream_executor = destroy_executor,
                           .create_timer_fns = create_timer_fns,
                           .destroy_timer_fns = destroy_timer_fns};
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
  ok(status);
}

extern "C" void TF_InitKernel() {
  TF_Status* const status = TF_NewStatus();
  TF_KernelBuilder* const builder =
      TF_NewKernelBuilder("Neg", "GPU", &create_neg, &compute_neg, &delete_neg);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status);
  TF_RegisterKernelBuilder("StandinNeg", builder, status);
  TF_DeleteStatus(status);
}
