// network_blame.h - which host is to blame when members of a world live and could not reach each
// other: a host that ssh reaches may still be cut off from the network of the training. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace hvd::launch {

// What one member said. Without `to` it did not reach the place where all members meet.
struct Unreached {
  std::string from = {};
  std::string to = {};
};

struct Standing {
  std::string host = {};
  int32_t first_rank = 0;
  bool has_state = false;  // one of its workers has
};

// The host in most of the broken pairs, whichever end complained: the one that is cut off lacks
// all others, or all others lack it. Among equals one without state, then the one with the higher
// ranks: the training loses least by it. None: nobody complained about another host.
std::optional<std::string> host_to_blame(std::span<const Unreached> complaints,
                                         std::span<const Standing> hosts);

}  // namespace hvd::launch
