// measure_gpus.h - a rank of the job by which the doctor tries the GPUs: sums in device memory, the
// elements checked. Rank 0 prints "gpus RANKS SMALL_NS LARGE_NS". One thread, once per process.
#pragma once

namespace hvd::measure {

inline constexpr char kGpuOption[] = "--measure-gpus";

// The exit code.
int measure_gpus();

}  // namespace hvd::measure
