// gpu_plans.h - what tests of plans for GPUs have in common.
#pragma once

#include "collective/gpu/launch_plan.h"

namespace hvd::collective::gpu {

inline constexpr Abilities kAllAbilities{.has_kernels = true, .packs = true};

inline Numeric numeric_of(DType dtype, ReduceOp op, Scale pre = {}, Scale post = {}) {
  return {.dtype = dtype, .slot_dtype = dtype, .op = op, .pre = pre, .post = post};
}

}  // namespace hvd::collective::gpu
