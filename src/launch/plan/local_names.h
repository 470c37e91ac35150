// local_names.h - which host names mean this machine. Asks the resolver, which may ask the network,
// in processes of their own: a name server that does not answer costs the deadline, no more.
// One thread, before Signals are taken over.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"

namespace hvd::launch {

// By name, true if it is ours. A name that cannot be resolved in time is somebody else's: ssh may
// still know it.
std::vector<bool> find_local_names(std::span<const std::string> names,
                                   const std::string& own_hostname, Deadline deadline);

// Whether an address is one of this machine's now: of any interface, or loopback's.
bool is_own_address(const sockaddr* address);

}  // namespace hvd::launch
