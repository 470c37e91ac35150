// take_leave.h - the end of MPI in this process: all ranks come together, then MPI_Finalize. Once,
// in a process that initialized MPI itself, when its last job has ended well. One thread.
#pragma once

#include <span>

#include "mpi/group.h"

namespace hvd::mpi {

// Blocks until all ranks have come, however late: MPI_Finalize would, too, and who went ahead would
// be taken for a crash by mpirun. If MPI_Finalize then hangs, the process says so and ends with
// `exit_status` after half a minute.
void take_leave(Api& api, std::span<Group* const> groups, int exit_status);

}  // namespace hvd::mpi
