// kernels.h - our kernels on a GPU: copies of many stretches in one launch, scaled and converted on
// the way. Loaded for a device when it is first asked for, and kept. Needs the device's context to
// be current. Any thread; never blocks, apart from loading.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/dtype.h"
#include "base/status.h"
#include "collective/gpu/kernel_arithmetic.h"
#include "device/module.h"

namespace hvd::collective::gpu {

enum class KernelId : int {
#define HVD_KERNEL_ID(name, ...) name,
  HVD_GPU_KERNELS(HVD_KERNEL_ID)
#undef HVD_KERNEL_ID
};
inline constexpr size_t kKernelCount = 0
#define HVD_KERNEL_COUNT(name, ...) +1
    HVD_GPU_KERNELS(HVD_KERNEL_COUNT)
#undef HVD_KERNEL_COUNT
    ;

// Which kernel does it; nothing: none. Pure.
KernelId copy_kernel(DType dtype);
std::optional<KernelId> scale_kernel(DType dtype);
std::optional<KernelId> narrow_kernel(DType narrow_type);  // from float32
std::optional<KernelId> widen_kernel(DType narrow_type);   // to float32

class GpuKernels {
 public:
  static Result<const GpuKernels*> of(int device);

  // All segments; in as many launches as it takes.
  Status run(KernelId id, std::span<const Segment> segments, const Scale& scale,
             device::StreamHandle stream) const;

 private:
  static Result<GpuKernels> load();

  std::array<device::FunctionHandle, kKernelCount> functions_ = {};
};

// The module as text; made by `./dev ptx`.
extern const char kKernelText[];

}  // namespace hvd::collective::gpu
