// library_reduce.h - a sequence of blocks reduced by the library below the mesh.
#pragma once

#include "collective/hosts/host_reduce.h"

namespace hvd::collective::library {

// Only where hosts.library() is there.
std::unique_ptr<hosts::HostReduce> make_library_reduce(hosts::HostLink& hosts,
                                                       const hosts::BlockSequence& sequence);

}  // namespace hvd::collective::library
