#include "mpi/tcp_beside.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace hvd::mpi {
namespace {

// Ranks by host, from 0 on.
topology::HostMap hosts_of(const std::vector<int32_t>& ranks_per_host) {
  topology::HostMap hosts;
  int32_t rank = 0;
  for (size_t host = 0; host < ranks_per_host.size(); ++host) {
    hosts.names.push_back("host" + std::to_string(host));
    hosts.ranks_of.emplace_back();
    for (int32_t i = 0; i < ranks_per_host[host]; ++i) {
      hosts.ranks_of.back().push_back(rank++);
      hosts.host_of.push_back(static_cast<int32_t>(host));
    }
  }
  return hosts;
}

TEST(TcpBeside, BothEndsTryTheSamePairsAndEveryRankTriesEveryOtherHost) {
  for (const auto& ranks :
       std::vector<std::vector<int32_t>>{{1, 1}, {2, 2, 2}, {1, 3}, {4, 2, 3}, {5, 1, 2}}) {
    const topology::HostMap hosts = hosts_of(ranks);
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (int32_t rank = 0; rank < static_cast<int32_t>(hosts.host_of.size()); ++rank) {
      std::set<int32_t> reached = {hosts.host_of[static_cast<size_t>(rank)]};
      for (const int32_t partner : partners_of(hosts, rank)) {
        pairs.emplace(rank, partner);
        reached.insert(hosts.host_of[static_cast<size_t>(partner)]);
      }
      EXPECT_EQ(reached.size(), ranks.size()) << "rank " << rank;
    }
    for (const auto& [one, other] : pairs) EXPECT_TRUE(pairs.contains({other, one}));
  }
}

}  // namespace
}  // namespace hvd::mpi
