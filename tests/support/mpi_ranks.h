// mpi_ranks.h - the ranks of run_ranks() as processes that mpirun has started (HVD_TEST_MPI=1), for
// the same tests over MPI: every process runs the same tests in the same order, and is one rank of
// each. Hosts are simulated by names, as with threads. Tests of more ranks than there are processes
// are left out.
#pragma once

#include <functional>

#include "tests/support/thread_ranks.h"
#include "topology/hosts.h"

namespace hvd::testing {

bool runs_under_mpi();
void run_mpi_ranks(int size, const topology::HostMap& hosts,
                   const std::function<void(TestRank&)>& function, const ThreadOptions& options);

}  // namespace hvd::testing
