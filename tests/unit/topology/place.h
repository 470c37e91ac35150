// place.h - what the tests of topologies share.
#pragma once

#include <map>
#include <string>

#include "base/text.h"
#include "topology/topology.h"

namespace hvd::topology {

using Variables = std::map<std::string, std::string>;

// "rank/size local/size cross/size"
inline std::string place_of(const Topology& t) {
  return concat(t.rank, "/", t.size, " ", t.local_rank, "/", t.local_size, " ", t.cross_rank, "/",
                t.cross_size);
}

}  // namespace hvd::topology
