// paced_stream.h - a control stream over TCP of a job whose data MPI carries. Whoever reads it
// drives MPI, too, which moves only while it is looked at: so its descriptor is readable when bytes
// have come, and when it is time for the next look (pacer.h). Threads as for any stream.
#pragma once

#include <memory>

#include "base/status.h"
#include "mpi/group.h"
#include "mpi/pacer.h"
#include "net/stream.h"

namespace hvd::mpi {

// The group outlives the stream.
Result<std::unique_ptr<net::Stream>> make_paced_stream(std::unique_ptr<net::Stream> below,
                                                       std::shared_ptr<Pacer> pacer, Group& group);

}  // namespace hvd::mpi
