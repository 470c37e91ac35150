#include "launch/plan/assignment.h"

#include <algorithm>

#include "base/text.h"

namespace hvd::launch {

Result<std::vector<Assignment>> assign_ranks(std::span<const HostSlots> hosts, int32_t num_proc) {
  if (const int64_t slots = total_slots(hosts); slots < num_proc) {
    return invalid_argument(
        concat("-np ", num_proc, " asks for more workers than the hosts have slots (", slots, ")"));
  }
  std::vector<Assignment> ranks;
  std::vector<int32_t> hosts_with;  // by local rank: how many hosts have it
  for (size_t host = 0; host < hosts.size(); ++host) {
    const int32_t left = num_proc - static_cast<int32_t>(ranks.size());
    const int32_t local_size = std::min(hosts[host].slots, left);
    for (int32_t local_rank = 0; local_rank < local_size; ++local_rank) {
      if (static_cast<size_t>(local_rank) == hosts_with.size()) hosts_with.push_back(0);
      ranks.push_back({.host = host,
                       .place = {.rank = static_cast<int32_t>(ranks.size()),
                                 .size = num_proc,
                                 .local_rank = local_rank,
                                 .local_size = local_size,
                                 .cross_rank = hosts_with[static_cast<size_t>(local_rank)]++,
                                 .cross_size = 0,
                                 .hostname = hosts[host].host,
                                 .job_id = {}}});
    }
  }
  for (Assignment& rank : ranks) {
    rank.place.cross_size = hosts_with[static_cast<size_t>(rank.place.local_rank)];
  }
  return ranks;
}

}  // namespace hvd::launch
