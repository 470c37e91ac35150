// hosts.h - which rank runs on which host: an immutable value, the same on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvd::topology {

struct HostMap {
  std::vector<int32_t> host_of;  // per rank: host number; hosts are numbered by their lowest rank
  std::vector<std::vector<int32_t>> ranks_of;  // per host: its ranks, ascending
  std::vector<std::string> names;              // per host

  int32_t host_count() const { return static_cast<int32_t>(ranks_of.size()); }
  bool is_one_host() const { return ranks_of.size() == 1; }
};

}  // namespace hvd::topology
