// take_leave.h - the end of MPI in this process: all ranks come together, then MPI_Finalize. Once,
// in a process that initialized MPI itself, when its last job has ended well. One thread.
#pragma once

#include <chrono>
#include <span>

#include "mpi/group.h"

namespace hvd::mpi {

struct LeaveTimes {
  // For requests of streams that peers have not ended yet.
  std::chrono::milliseconds drain{2000};
  // MPICH over UCX's TCP: a rank that still looks at MPI when the first one asks it for a last
  // acknowledgement answers; that one then waits for the end of the job and answers nobody, and the
  // rank that was late gets no acknowledgement, for ever. So nobody asks before all have looked
  // away: the last one sees that all have come at most one rest later than the first.
  std::chrono::milliseconds settle{50};
  // All ranks are there: it takes milliseconds.
  std::chrono::milliseconds finalize{30000};
};

// Blocks until all ranks have come, however late: MPI_Finalize would, too, and who went ahead would
// be taken for a crash by mpirun. If MPI_Finalize then hangs, the process says so and ends with
// `exit_status`.
void take_leave(Api& api, std::span<Group* const> groups, int exit_status,
                const LeaveTimes& times = {});

}  // namespace hvd::mpi
