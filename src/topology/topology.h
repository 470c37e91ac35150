// topology.h - where this process stands in the job: an immutable value.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "base/status.h"

namespace hvd::topology {

enum class Launcher {
  kNone,  // a process that was started alone
  kHorovodrun,
  kTorchrun,
  kOpenMpi,
  kPmi,  // MPICH, Intel MPI, srun --mpi=pmi2
  kSlurm,
  kIndexedJob,  // Kubernetes
  kSageMaker,
  kByHand,
};

struct Topology {
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0, local_size = 1;
  int32_t cross_rank = 0, cross_size = 1;
  std::string hostname{};  // HOROVOD_HOSTNAME, Slurm's name of the node, or the machine's name
  // Names the job on this host, the same for all its processes and for no other job. Empty when
  // size is 1.
  std::string job_id{};
  Launcher launcher = Launcher::kNone;
  // Where the ranks of several hosts can meet if nothing else is said: the name of rank 0's host,
  // and a port that all ranks choose alike. Empty and 0 where the launcher does not tell.
  std::string first_host{};
  uint16_t store_port = 0;

  bool is_homogeneous() const { return size == int64_t{local_size} * cross_size; }
};

// In this order: a Kubernetes Indexed Job (JOB_COMPLETION_INDEX and HOROVOD_SIZE, but no
// HOROVOD_RANK), HOROVOD_RANK/SIZE/LOCAL_* (set by horovodrun), torchrun (TORCHELASTIC_RUN_ID is
// set; it may run inside one of the next), Open MPI, PMI (MPICH, Hydra), a Slurm step,
// RANK/WORLD_SIZE/LOCAL_* set by hand, SageMaker's resource file; none: a job of one.
// HOROVOD_CROSS_* completes any of them.
// Missing local/cross values of a one-host job, or of equal hosts filled one after the other,
// follow from rank and size. Inconsistent or garbage values are an error that names the variable;
// an empty value counts as unset. May read /proc; never blocks. job_id: HOROVOD_JOB_ID, else
// derived from what the launcher gives (PMIX namespace, SLURM_JOB_ID.STEP_ID,
// MASTER_ADDR:MASTER_PORT + run id, parent process id as a last resort).
Result<Topology> topology_from_environment(const Environment& environment);

// Checks ranges: 0 <= rank < size, local and cross likewise, and that no part is larger than the
// job.
Status check_topology(const Topology& topology);

}  // namespace hvd::topology
