// find_library.h - which MPI library this process uses. In this order: the one that
// HOROVOD_MPI_LIBRARY names; one that is in the process already (mpi4py, a program linked to it);
// one that lies beside the launcher this process descends from (../lib of mpirun's daemon, as in
// virtual environments); the usual names, those of the launcher's family first. Loading runs the
// library's constructors, not MPI_Init. Reads /proc. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "mpi/abi/symbols.h"

namespace hvd::mpi {

// Nothing found: PRECONDITION_ERROR that lists what was tried and why it failed.
Result<Symbols> find_library(const Environment& environment);

// Is a library in the process already, whoever loaded it?
bool is_loaded();

// ---- the parts, for tests ----

// Names to try, the best first.
std::vector<std::string> usual_names(const Environment& environment);
// "libmpi.so.40", "/x/libmpich.so.12.1.0": the C library itself, not its C++ or Fortran parts.
bool is_library_name(const std::string& path);

}  // namespace hvd::mpi
