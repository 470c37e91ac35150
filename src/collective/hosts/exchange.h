// exchange.h - one exchange of blocks over hosts, and the kinds there are. A state machine like a
// task; make_exchange() runs those of a work one after the other. Needs the engine role.
#pragma once

#include <memory>

#include "collective/hosts/tasks.h"

namespace hvd::hosts {

// Allgather, broadcast: each block crosses to each host once and is handed on there.
std::unique_ptr<native::Task> make_gather(native::Link& local, HostLink& hosts,
                                          const native::Exchange& exchange);
// Alltoall: each pair of members on different hosts has a stream of its own.
std::unique_ptr<native::Task> make_pairwise(native::Link& local, HostLink& hosts,
                                            const native::Exchange& exchange);
// Reducescatter: the sum of a host for a block crosses to its member once.
std::unique_ptr<native::Task> make_scatter(native::Link& local, HostLink& hosts,
                                           const native::Exchange& exchange);

}  // namespace hvd::hosts
