#include "collective/gpu/kernels.h"

#include <algorithm>

#include "base/thread_annotations.h"

namespace hvd::collective::gpu {
namespace {

constexpr unsigned kThreads = 256;
// Enough to fill a large GPU; threads go on to elements further on.
constexpr uint64_t kMostBlocks = 1024;

constexpr const char* kNames[] = {
#define HVD_KERNEL_NAME(name, ...) #name,
    HVD_GPU_KERNELS(HVD_KERNEL_NAME)
#undef HVD_KERNEL_NAME
};

// Of every device that was asked for. Never destroyed, like the driver.
struct KernelStore {
  Mutex mutex;
  std::array<std::unique_ptr<Result<GpuKernels>>, device::kMaxDevices> all HVD_GUARDED_BY(mutex);
};

}  // namespace

KernelId copy_kernel(DType dtype) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return KernelId::hvd_copy_1;
    case 2:
      return KernelId::hvd_copy_2;
    case 4:
      return KernelId::hvd_copy_4;
    default:
      return KernelId::hvd_copy_8;
  }
}

std::optional<KernelId> scale_kernel(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return KernelId::hvd_scale_uint8;
    case DType::kInt8:
      return KernelId::hvd_scale_int8;
    case DType::kInt32:
      return KernelId::hvd_scale_int32;
    case DType::kInt64:
      return KernelId::hvd_scale_int64;
    case DType::kFloat16:
      return KernelId::hvd_scale_float16;
    case DType::kBfloat16:
      return KernelId::hvd_scale_bfloat16;
    case DType::kFloat32:
      return KernelId::hvd_scale_float32;
    case DType::kFloat64:
      return KernelId::hvd_scale_float64;
    default:
      return std::nullopt;
  }
}

std::optional<KernelId> narrow_kernel(DType narrow_type) {
  if (narrow_type == DType::kFloat16) return KernelId::hvd_narrow_float16;
  if (narrow_type == DType::kBfloat16) return KernelId::hvd_narrow_bfloat16;
  return std::nullopt;
}

std::optional<KernelId> widen_kernel(DType narrow_type) {
  if (narrow_type == DType::kFloat16) return KernelId::hvd_widen_float16;
  if (narrow_type == DType::kBfloat16) return KernelId::hvd_widen_bfloat16;
  return std::nullopt;
}

Result<GpuKernels> GpuKernels::load() {
  GpuKernels made;
  HVD_TRY_ASSIGN(const device::Module module, device::Module::load(kKernelText));
  for (size_t i = 0; i < kKernelCount; ++i) {
    HVD_TRY_ASSIGN(made.functions_[i], module.find(kNames[i]));
  }
  return made;
}

Result<const GpuKernels*> GpuKernels::of(int device) {
  static auto* const store = new KernelStore();
  const auto look = [&]() -> const Result<GpuKernels>* {
    const MutexLock lock(store->mutex);
    return store->all[static_cast<size_t>(device)].get();
  };
  const Result<GpuKernels>* found = look();
  if (found == nullptr) {
    auto loaded = std::make_unique<Result<GpuKernels>>(load());  // the driver is slow: no lock
    const MutexLock lock(store->mutex);
    auto& place = store->all[static_cast<size_t>(device)];
    if (place == nullptr) place = std::move(loaded);
    found = place.get();
  }
  if (!*found) return found->status();
  return static_cast<const GpuKernels*>(&**found);
}

Status GpuKernels::run(KernelId id, std::span<const Segment> segments, const Scale& scale,
                       device::StreamHandle stream) const {
  while (!segments.empty()) {
    const size_t now = std::min<size_t>(segments.size(), kMostSegments);
    Batch batch;
    uint64_t longest = 0;
    for (size_t i = 0; i < now; ++i) {
      batch.segments[i] = segments[i];
      longest = std::max(longest, segments[i].count);
    }
    Scale by = scale;
    void* parameters[] = {&batch, &by};
    const uint64_t blocks = std::clamp<uint64_t>((longest + kThreads - 1) / kThreads, 1,
                                                 std::max<uint64_t>(kMostBlocks / now, 1));
    HVD_TRY(device::launch(functions_[static_cast<size_t>(id)],
                           {static_cast<unsigned>(blocks), static_cast<unsigned>(now), kThreads},
                           parameters, stream));
    segments = segments.subspan(now);
  }
  return Status::ok();
}

}  // namespace hvd::collective::gpu
