// exchange.h - one exchange of blocks over hosts, and the kinds there are. A state machine like a
// task; make_exchange() runs those of a work one after the other.
#pragma once

#include <memory>

#include "collective/hosts/tasks.h"

namespace hvd::collective::hosts {

inline Guard guard_of(const Exchange& exchange) {
  return exchange.moves_bytes ? Guard::kBytes : Guard::kNumbers;
}

// Allgather, broadcast: each block crosses to each host once and is handed on there.
std::unique_ptr<Task> make_gather(shared_memory::Link& local, HostLink& hosts,
                                  const Exchange& exchange);
// Alltoall: each pair of members on different hosts has a stream of its own.
std::unique_ptr<Task> make_pairwise(shared_memory::Link& local, HostLink& hosts,
                                    const Exchange& exchange);
// Reducescatter: the sum of a host for a block crosses to its member once.
std::unique_ptr<Task> make_scatter(shared_memory::Link& local, HostLink& hosts,
                                   const Exchange& exchange);

}  // namespace hvd::collective::hosts
