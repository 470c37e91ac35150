// A CUDA backend for the CPU build of PyTorch, for tests: tensors really are on "cuda:0", their
// memory, streams and events are those of the stand-in for libcuda. Operators wait for the current
// stream, compute on the host in the second mapping of the device's memory, and are therefore in
// stream order: what another stream has not been ordered after is read too early, as on a GPU.
// Memory that is freed is given out again at once, as by PyTorch's caching allocator.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <map>
#include <mutex>

#include "tests/standins/cuda/control.h"

extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int*);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxPushCurrent_v2(void*);
int cuCtxPopCurrent_v2(void**);
int cuMemAlloc_v2(unsigned long long*, size_t);
int cuStreamCreateWithPriority(void**, unsigned, int);
int cuStreamSynchronize(void*);
int cuStreamQuery(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventQuery(void*);
int cuEventSynchronize(void*);
int cuEventDestroy_v2(void*);
}

namespace {

constexpr auto kCuda = c10::DeviceType::CUDA;
constexpr int kMaxDevices = 8;
thread_local int current_device = 0;
thread_local int64_t current_streams[kMaxDevices] = {};

struct InContext {
  explicit InContext(int device) {
    void* context = nullptr;
    TORCH_CHECK(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, device) == 0,
                "no stand-in device ", device);
    cuCtxPushCurrent_v2(context);
  }
  ~InContext() { cuCtxPopCurrent_v2(nullptr); }
};

void* handle_of(int64_t stream) { return reinterpret_cast<void*>(stream); }

c10::Device with_index(c10::Device device) {
  return device.has_index() ? device
                            : c10::Device(kCuda, static_cast<c10::DeviceIndex>(current_device));
}

// ---- memory

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(kCuda, static_cast<c10::DeviceIndex>(current_device));
    if (bytes == 0) return {nullptr, nullptr, &give_back, device};
    const size_t rounded = (bytes + 511) / 512 * 512;
    void* memory = take_kept(rounded);
    if (memory == nullptr) {
      const InContext context(current_device);
      unsigned long long pointer = 0;
      TORCH_CHECK(cuMemAlloc_v2(&pointer, rounded) == 0, "stand-in: out of memory");
      memory = reinterpret_cast<void*>(pointer);
    }
    const std::lock_guard lock(mutex());
    sizes()[memory] = {current_device, rounded};
    return {memory, memory, &give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    cuStreamSynchronize(handle_of(current_streams[current_device]));
    std::memcpy(standin_view(to), standin_view(from), bytes);
  }

 private:
  using Kind = std::pair<int, size_t>;  // device, bytes
  static std::mutex& mutex() {
    static auto* m = new std::mutex();
    return *m;
  }
  static std::map<void*, Kind>& sizes() {
    static auto* all = new std::map<void*, Kind>();
    return *all;
  }
  static std::multimap<Kind, void*>& kept() {
    static auto* all = new std::multimap<Kind, void*>();
    return *all;
  }
  static void* take_kept(size_t bytes) {
    const std::lock_guard lock(mutex());
    const auto found = kept().find({current_device, bytes});
    if (found == kept().end()) return nullptr;
    void* memory = found->second;
    kept().erase(found);
    return memory;
  }
  static void give_back(void* memory) {
    if (memory == nullptr) return;
    const std::lock_guard lock(mutex());
    const auto found = sizes().find(memory);
    if (found == sizes().end()) return;
    kept().emplace(found->second, memory);
    sizes().erase(found);
  }
};
Allocator allocator;

// ---- devices, streams, events

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kCuda; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device old = getDevice();
    current_device = d.index();
    return old;
  }
  c10::Device getDevice() const override {
    return {kCuda, static_cast<c10::DeviceIndex>(current_device)};
  }
  void setDevice(c10::Device d) const override { current_device = d.index(); }
  void uncheckedSetDevice(c10::Device d) const noexcept override { current_device = d.index(); }
  c10::Stream getStream(c10::Device d) const override {
    d = with_index(d);
    return c10::Stream(c10::Stream::UNSAFE, d, current_streams[d.index()]);
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return c10::Stream(c10::Stream::DEFAULT, with_index(d));
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    d = with_index(d);
    const InContext context(d.index());
    void* stream = nullptr;
    cuStreamCreateWithPriority(&stream, 1, 0);
    return c10::Stream(c10::Stream::UNSAFE, d, reinterpret_cast<int64_t>(stream));
  }
  // Callbacks of futures run in it; one is enough.
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override {
    static std::mutex mutex;
    static std::map<int, c10::Stream> pool;
    d = with_index(d);
    const std::lock_guard lock(mutex);
    const auto found = pool.find(d.index());
    return found != pool.end() ? found->second
                               : pool.emplace(d.index(), getNewStream(d, 0)).first->second;
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    const c10::Stream old = getStream(s.device());
    current_streams[with_index(s.device()).index()] = s.id();
    return old;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    int count = 0;
    cuDeviceGetCount(&count);
    return static_cast<c10::DeviceIndex>(count);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    const InContext context(stream.device_index());
    if (*event == nullptr) cuEventCreate(event, 2);
    cuEventRecord(*event, handle_of(stream.id()));
  }
  void block(void* event, const c10::Stream& stream) const override {
    const InContext context(stream.device_index());
    if (event != nullptr) cuStreamWaitEvent(handle_of(stream.id()), event, 0);
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || cuEventQuery(event) == 0;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr) cuEventDestroy_v2(event);
  }
  bool queryStream(const c10::Stream& stream) const override {
    const InContext context(stream.device_index());
    return cuStreamQuery(handle_of(stream.id())) == 0;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const InContext context(stream.device_index());
    cuStreamSynchronize(handle_of(stream.id()));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) cuEventSynchronize(event);
  }
};

const int registered = [] {
  c10::SetAllocator(kCuda, &allocator, 100);
  static Guard guard;
  c10::impl::registerDeviceGuard(kCuda, &guard);
  return 0;
}();

}  // namespace

namespace c10d {

// DDP measures by a timer of its device.
class StandinTimer final : public Timer {
 public:
  explicit StandinTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event, Event) override { return std::nullopt; }
};
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, StandinTimer)

}  // namespace c10d

namespace at {

struct CUDAHooks final : CUDAHooksInterface {  // NOLINT: PyTorch looks for this name
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex current_device() const override { return getCurrentDevice(); }
  c10::DeviceIndex deviceCount() const override { return Guard().deviceCount(); }
  void setCurrentDevice(c10::DeviceIndex d) const override { ::current_device = d; }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(::current_device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex d) const override {
    const auto old = getCurrentDevice();
    ::current_device = d;
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex d) const override {
    return exchangeDevice(d);
  }
  bool isPinnedPtr(const void*) const override { return false; }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return c10::GetAllocator(c10::DeviceType::CPU);
  }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

// ---- operators

// The tensor's memory where the host may touch it, when the current stream has got here.
at::Tensor on_host(const at::Tensor& t) {
  if (t.is_cpu()) return t;
  const InContext context(t.get_device());
  cuStreamSynchronize(handle_of(current_streams[t.get_device()]));
  void* data = t.numel() == 0 ? nullptr : standin_view(t.data_ptr());
  return at::from_blob(data, t.sizes(), t.strides(), t.options().device(at::kCPU));
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(with_index(device.value_or(c10::Device(kCuda))));
  return at::detail::empty_generic(size, &allocator, kKeys, dtype.value_or(at::kFloat), format);
}
at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(with_index(device.value_or(c10::Device(kCuda))));
  return at::detail::empty_strided_generic(size, stride, &allocator, kKeys,
                                           dtype.value_or(at::kFloat));
}
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}
at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}
const at::Tensor& resize_(const at::Tensor& t, c10::IntArrayRef size,
                          std::optional<at::MemoryFormat>) {
  size_t bytes = t.itemsize();
  for (const int64_t n : size) bytes *= static_cast<size_t>(n);
  const auto& storage = t.storage();
  if (storage.nbytes() < bytes) {
    const c10::DeviceGuard guard(t.device());
    storage.set_data_ptr_noswap(allocator.allocate(bytes));
    storage.set_nbytes(bytes);
  }
  t.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return t;
}
at::Tensor copy_from_resize(const at::Tensor& from, const at::Tensor& to) {
  resize_(to, from.sizes(), std::nullopt);
  on_host(to).copy_(on_host(from));
  return to;
}
at::Tensor strided(const at::Tensor& t, c10::IntArrayRef size, c10::IntArrayRef stride,
                   std::optional<int64_t> offset) {
  auto result = at::detail::make_tensor<at::TensorImpl>(
      at::TensorImpl::VIEW, c10::Storage(t.storage()), t.key_set(), t.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride,
                                                      offset.value_or(t.storage_offset()));
  return result;
}
at::Tensor shaped_as(const at::Tensor& t, c10::IntArrayRef size) {
  const at::Tensor shaped =
      at::empty_strided(t.sizes(), t.strides(), t.options().device(at::kMeta)).view(size);
  return strided(t, shaped.sizes(), shaped.strides(), t.storage_offset());
}
at::Tensor& set_(at::Tensor& t, at::Storage storage, int64_t offset, at::IntArrayRef size,
                 at::IntArrayRef stride) {
  t.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return t;
}
at::Scalar local_scalar(const at::Tensor& t) { return on_host(t).item(); }
void record_stream(at::Tensor&, at::Stream) {}
void on_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("copy_", copy_);
  m.impl("_copy_from_and_resize", copy_from_resize);
  m.impl("as_strided", strided);
  m.impl("view", shaped_as);
  m.impl("_local_scalar_dense", local_scalar);
  m.impl("resize_", resize_);
  m.impl("record_stream", record_stream);
  m.impl("set_.source_Storage_storage_offset", set_);
}
TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_host>());
}

extern "C" int64_t standin_torch_current_stream(int device) { return current_streams[device]; }
