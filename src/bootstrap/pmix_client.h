// pmix_client.h - the process manager behind PMIx: Slurm under --mpi=pmix, mpirun of Open MPI. Its
// protocol is that of a library, libpmix, which is loaded at run time where it is installed.
#pragma once

#include <memory>

#include "base/settings.h"
#include "base/status.h"
#include "bootstrap/process_manager.h"

namespace hvd::bootstrap {

// The environment names a server of PMIx, and the library is there.
bool has_pmix(const Environment& environment);
// Greets the server, which is on this host; blocks until it answers.
Result<std::unique_ptr<ProcessManager>> open_pmix();

}  // namespace hvd::bootstrap
