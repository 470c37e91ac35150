// explain.h - what rank 0 of an MPI job tells about how far it is protected, once per process: a
// second init changes nothing about it. Pure but for the log.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "mpi/choice.h"

namespace hvd::mpi {

// The key of the job came through MPI.
void explain_agreed_key(Carrier carrier, int32_t rank, uint64_t epoch);
// Control and objects travel through MPI, which does not protect them; `problem`: why.
void explain_open_mpi(const std::string& problem, int32_t rank, uint64_t epoch);
// The same where the job was given a key: whoever does that wants it protected.
Status refuse_open_mpi(const std::string& problem);

}  // namespace hvd::mpi
