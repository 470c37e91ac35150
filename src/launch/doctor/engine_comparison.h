// engine_comparison.h - whether MPI or our own streams are quicker between some hosts: a short job
// under mpirun, one rank per host. Blocks, bounded in time; not while Signals are taken over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {

struct EngineTimes {
  Nanoseconds small{}, large{};  // of an allreduce of 4 KiB and of 16 MiB
};
struct EngineComparison {
  std::string failure = {};  // why there are no times
  EngineTimes mpi = {}, own = {};
};

// None: there is no mpirun, or one host only.
std::optional<EngineComparison> compare_engines(const Prepared& prepared);

// What the ranks of the job print; see horovodrun/measure_engines.h. Pure.
Result<EngineComparison> read_engine_times(std::string_view output);
// Some lines for people. Pure.
std::string describe(const EngineComparison& comparison);

}  // namespace hvd::launch
