// choice.h - whether MPI brings the ranks together, and what carries bytes between hosts. Pure; the
// reason is logged by the caller.
#pragma once

#include <string>

#include "base/settings.h"
#include "base/status.h"

namespace hvd::mpi {

// What the program gave to init, and whether an MPI library is in the process.
struct Wishes {
  bool has_comm = false;   // a communicator
  bool has_ranks = false;  // a list of ranks, which has no effect without MPI
  bool is_loaded = false;
};

enum class Carrier { kMpi, kNative };

struct Choice {
  bool uses_mpi = false;
  Carrier carrier = Carrier::kNative;  // between hosts
  std::string reason;
};

// HOROVOD_CONTROLLER=mpi, HOROVOD_CPU_OPERATIONS=mpi and a communicator ask for MPI;
// HOROVOD_CONTROLLER=native or gloo rules it out. Otherwise it is used where mpirun has started the
// job on several hosts and nothing else says how its ranks find each other.
// HOROVOD_CPU_OPERATIONS=native or gloo leaves the data to our own link.
Result<Choice> choose(const Environment& environment, const Wishes& wishes);

}  // namespace hvd::mpi
