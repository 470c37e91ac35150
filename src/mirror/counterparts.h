// counterparts.h - which rank of another host keeps the mirror of a member. Pure; every rank finds
// the same.
#pragma once

#include <cstdint>
#include <vector>

namespace hvd::mirror {

// The members of a process set by host, as global ranks.
struct Members {
  std::vector<int32_t> ranks;    // per member
  std::vector<int32_t> host_of;  // per member: host number

  bool spans_hosts() const;
  std::vector<int> on_host(int32_t host) const;  // member numbers, ascending
  std::vector<int32_t> hosts() const;            // ascending
};

// The member of `host` that gets the state of `member`; -1 if the set has none there.
int receiver_of(const Members& members, int member, int32_t host);
// Members whose state `receiver` gets.
std::vector<int> senders_to(const Members& members, int receiver);

}  // namespace hvd::mirror
