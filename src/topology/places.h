// places.h - ranks of hosts that are alike and numbered: host i has the ranks i*n to i*n+n-1.
// Pure; any thread.
#pragma once

#include "topology/launcher.h"

namespace hvd::topology {

// Where nobody else uses the network of the host (pods, containers) the port needs no choice.
inline constexpr uint16_t kPodStorePort = 29410;

// Fills in world, local and cross. Each host has as many ranks as HOROVOD_LOCAL_SIZE says, by
// default one. `index_name` is the variable or file that `index` comes from, for messages.
Status place_on_equal_hosts(const Environment& environment, int32_t index, int32_t host_count,
                            const char* index_name, LauncherFacts& facts);

}  // namespace hvd::topology
