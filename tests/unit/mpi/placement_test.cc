// Local and cross ranks from the hosts of all ranks.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "mpi/placement.h"
#include "store/memory_store.h"

namespace hvd::mpi {
namespace {

using Values = std::array<int32_t, 4>;  // local rank, local size, cross rank, cross size

Values values_of(const topology::Topology& t) {
  return {t.local_rank, t.local_size, t.cross_rank, t.cross_size};
}

TEST(MpiPlacement, CountsRanksPerHost) {
  const std::vector<std::string> hosts = {"a", "a", "b", "b"};

  EXPECT_EQ(values_of(placed_on(hosts, 0)), (Values{0, 2, 0, 2}));
  EXPECT_EQ(values_of(placed_on(hosts, 3)), (Values{1, 2, 1, 2}));
}

TEST(MpiPlacement, TakesUnevenHosts) {
  const std::vector<std::string> hosts = {"a", "b", "b"};

  EXPECT_EQ(values_of(placed_on(hosts, 0)), (Values{0, 1, 0, 2}));
  EXPECT_EQ(values_of(placed_on(hosts, 1)), (Values{0, 2, 1, 2}));
  EXPECT_EQ(values_of(placed_on(hosts, 2)), (Values{1, 2, 0, 1}));
}

TEST(MpiPlacement, TakesRanksDealtOutInTurn) {
  const std::vector<std::string> hosts = {"b", "a", "b", "a"};

  EXPECT_EQ(values_of(placed_on(hosts, 2)), (Values{1, 2, 0, 2}));
  EXPECT_EQ(values_of(placed_on(hosts, 3)), (Values{1, 2, 1, 2}));
}

TEST(MpiPlacement, IsTheSameJobForAllRanks) {
  store::MemoryStore store;
  std::array<std::string, 3> ids;
  std::vector<std::thread> ranks;
  for (int32_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto topology = find_placement({rank, 3, "name", rank == 2 ? "cd" : "ab"}, store, 1,
                                           Deadline::after(std::chrono::seconds(20)));
      ASSERT_TRUE(topology) << topology.status().message();
      EXPECT_EQ(topology->local_size, rank == 2 ? 1 : 2);
      ids[static_cast<size_t>(rank)] = topology->job_id;
    });
  }
  for (std::thread& rank : ranks) rank.join();

  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_GT(ids[0].size(), 16u);
}

}  // namespace
}  // namespace hvd::mpi
