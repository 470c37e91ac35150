// launch_plan.h - a work as one launch of NCCL with our kernels before and after it: small pieces
// are packed together, wire types converted, factors applied where NCCL has no reduction for them.
// Pure; any thread. Only agreed values decide.
#pragma once

#include <vector>

#include "collective/gpu/kernels.h"
#include "collective/gpu/levels.h"
#include "collective/gpu/nccl_calls.h"

namespace hvd::collective::gpu {

// What all members can do besides NCCL's own calls; agreed.
struct Abilities {
  bool has_kernels = false;
  bool packs = false;  // HOROVOD_BATCH_D2D_MEMCOPIES
};

struct KernelStep {
  KernelId kernel{};
  Scale scale;
  std::vector<Segment> segments;
};
struct Stretch {
  std::byte* begin = nullptr;
  uint64_t bytes = 0;
};
struct LaunchPlan {
  uint64_t scratch_bytes = 0;
  std::vector<Stretch> zeros;  // of the scratch: what a member that has joined gives
  std::vector<KernelStep> before;
  std::vector<Call> calls;
  std::vector<KernelStep> after;
};

// Pieces up to this size travel together, and so many bytes of them at most.
inline constexpr uint64_t kPackedPieceBytes = 256 << 10;
inline constexpr uint64_t kPackedBytes = uint64_t{64} << 20;

// Whether a work can go by NCCL in these levels.
bool can_launch(const Work& work, int size, const Abilities& abilities,
                Levels levels = Levels::kNone);

struct Among {
  int size = 1;
  int me = 0;
  Levels levels = Levels::kNone;
};
// `scratch` is null to learn `scratch_bytes`, then as long as that. Only where can_launch(). With
// levels the calls are whole still: stages_of() makes stages of them.
LaunchPlan plan_launch(const Work& work, const Among& among, const Abilities& abilities,
                       std::byte* scratch);

}  // namespace hvd::collective::gpu
