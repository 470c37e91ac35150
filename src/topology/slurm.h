// slurm.h - the place of a task that srun started. Pure; any thread.
#pragma once

#include "topology/launcher.h"

namespace hvd::topology {

// None outside of a real step: a batch script or an interactive shell has SLURM_PROCID=0 and the
// task count of its allocation, but is not one of the tasks.
Result<std::optional<LauncherFacts>> slurm_facts(const Environment& environment);

}  // namespace hvd::topology
