// measure_engines.h - a rank of the job by which the doctor compares MPI with our own streams.
// Rank 0 prints one line per engine: "engine NAME SMALL_NS LARGE_NS". One thread, once per process.
#pragma once

namespace hvd::measure {

inline constexpr char kOption[] = "--measure-engines";

// The exit code.
int measure_engines();

}  // namespace hvd::measure
