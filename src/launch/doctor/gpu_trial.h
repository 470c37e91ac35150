// gpu_trial.h - the part of `horovodrun doctor --gpu` that tries: a short job that sums in the
// memory of the GPUs and checks every element. Blocks, bounded in time; not while Signals are taken
// over.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {

struct GpuTrial {
  std::string failure = {};  // why there is nothing to tell
  int rank_count = 0;
  std::string detour = {};       // why it went through host memory; empty: by NCCL
  Nanoseconds small{}, large{};  // of an allreduce of 4 KiB and of 16 MiB
};

// On the hosts that were named; without any on this machine, one rank for each GPU (of one GPU
// two).
GpuTrial try_gpus(const Prepared& prepared);

// What the job printed; see horovodrun/measure_gpus.h. Pure.
Result<GpuTrial> read_gpu_trial(std::string_view out, std::string_view err);
// Some lines for people. Pure.
std::string describe(const GpuTrial& trial);

}  // namespace hvd::launch
