// tcp_beside.h - whether the hosts of a job whose data MPI carries reach each other by TCP as well.
// All ranks decide it together, since both ends of a stream must take the same way. Called once per
// init on every rank; blocks, at most until the deadline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "bootstrap/roster.h"
#include "mpi/group.h"
#include "net/keys/key.h"
#include "net/mesh.h"
#include "store/store.h"
#include "topology/hosts.h"

namespace hvd::mpi {

struct TcpQuestion {
  const std::vector<bootstrap::Member>& members;
  const topology::HostMap& hosts;
  net::Key key;  // of the job: proves what the ranks say
  uint64_t epoch = 0;
  bool is_needed = false;  // there is no way without, so nothing is gained by hurrying
};

// Empty: they do. Otherwise why not, the same on all ranks. `mesh`: of this rank, or why it has
// none.
Result<std::string> ask_for_tcp(Group& group, store::Store& store, const TcpQuestion& question,
                                const Result<net::Mesh*>& mesh, Deadline deadline);

// Whom `rank` tries to reach: one rank of every other host, more where that host has more ranks
// than its own. The same pairs from both ends. Pure.
std::vector<int32_t> partners_of(const topology::HostMap& hosts, int32_t rank);

}  // namespace hvd::mpi
