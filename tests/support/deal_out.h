// deal_out.h - ranks of a simulated job on hosts: blocks of neighbours, as equal as can be. Pure.
#pragma once

#include <string>

#include "topology/hosts.h"

namespace hvd::testing {

inline topology::HostMap deal_out(int ranks, int hosts) {
  topology::HostMap map;
  for (int rank = 0; rank < ranks; ++rank) {
    const int host = rank * hosts / ranks;
    if (host == map.host_count()) {
      map.ranks_of.emplace_back();
      map.names.push_back("host" + std::to_string(host));
    }
    map.host_of.push_back(host);
    map.ranks_of.back().push_back(rank);
  }
  return map;
}

}  // namespace hvd::testing
