// Layout, choice of algorithm, and how streams between hosts fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collective/hosts/algorithm.h"
#include "tests/unit/hosts_support.h"

namespace hvd::testing {
namespace {

using collective::hosts::Algorithm;
using collective::hosts::choose_algorithm;
using collective::hosts::goes_by_ring;
using collective::hosts::HostLayout;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostLayout, MembersKeepTheirOrderAndTheSmallestHostGivesTheLanes) {
  const HostLayout layout = HostLayout::of({5, 9, 5, 5, 9});

  EXPECT_THAT(layout.host_of, ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(layout.place_of, ElementsAre(0, 0, 1, 2, 1));
  EXPECT_THAT(layout.members, ElementsAre(ElementsAre(0, 2, 3), ElementsAre(1, 4)));
  EXPECT_EQ(layout.lanes, 2);
}

TEST(HostLayout, HostsWeighAsManyMembersAsTheyHaveInLowestTerms) {
  const HostLayout even = HostLayout::of({0, 0, 1, 1, 2, 2});
  const HostLayout uneven = HostLayout::of({0, 0, 0, 0, 1, 1});

  EXPECT_TRUE(even.is_even());
  EXPECT_THAT(even.weights, ElementsAre(1, 1, 1));
  EXPECT_FALSE(uneven.is_even());
  EXPECT_THAT(uneven.weights, ElementsAre(2, 1));
  EXPECT_EQ(uneven.total_weight, 3);
}

TEST(HostLayout, CounterpartsOfALargerHostShareTheMembersOfASmallerOne) {
  const HostLayout layout = HostLayout::of({0, 0, 0, 1, 1});

  EXPECT_EQ(layout.counterpart(0, 1), 3);
  EXPECT_EQ(layout.counterpart(1, 1), 4);
  EXPECT_EQ(layout.counterpart(2, 1), 3);
  EXPECT_EQ(layout.counterpart(4, 0), 1);
}

TEST(Algorithm, SmallBlocksGoInOneShotAndLargeOnesDirectly) {
  EXPECT_EQ(choose_algorithm(4096, 2, 16 << 10), Algorithm::kOneShot);
  EXPECT_EQ(choose_algorithm(4096, 8, 16 << 10), Algorithm::kDirect);
  EXPECT_EQ(choose_algorithm(256 << 10, 2, 16 << 10), Algorithm::kDirect);
}

TEST(Algorithm, LargeWorksOfManyHostsGoByTheRingUnlessItWouldRoundThemAgainAndAgain) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_FALSE(goes_by_ring({.bytes = kMiB}, 2));
  EXPECT_FALSE(goes_by_ring({.bytes = kMiB}, 8));
  EXPECT_TRUE(goes_by_ring({.bytes = kMiB}, 9));
  EXPECT_FALSE(goes_by_ring({.bytes = 40 << 10}, 9));
  EXPECT_FALSE(goes_by_ring({.bytes = kMiB, .has_short_floats = true}, 9));
}

TEST(HostLink, ACutStreamBecomesAStatusThatNamesThePeer) {
  run_hosts({0, 1, 2}, [&](HostRank& rank) {
    std::vector<float> data(1 << 20, 1.0f);
    ASSERT_TRUE(
        rank.group.allreduce(data.data(), data.size(), DType::kFloat32, ReduceOp::kSum).is_ok());
    ASSERT_TRUE(rank.group.barrier().is_ok());
    if (rank.member == 2) {
      rank.sockets.cut(102, 100);
      rank.sockets.cut(102, 101);
    }

    Status status;
    for (int i = 0; i < 100 && status.is_ok(); ++i)
      status = rank.group.allreduce(data.data(), data.size(), DType::kFloat32, ReduceOp::kSum);

    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_THAT(status.message(), HasSubstr(rank.member == 2 ? "rank 10" : "rank 102"));
    EXPECT_EQ(rank.group.barrier(), status) << "a failure stays";
  });
}

TEST(HostLink, MembersThatRunDifferentWorksFindOut) {
  run_hosts({0, 1}, [&](HostRank& rank) {
    std::vector<float> data(rank.member == 0 ? 1000 : 1001);

    const Status status =
        rank.group.allreduce(data.data(), data.size(), DType::kFloat32, ReduceOp::kSum);

    ASSERT_FALSE(status.is_ok());
    EXPECT_EQ(status.code(), StatusCode::kCorrupted);
    EXPECT_THAT(status.message(), HasSubstr("rank 10"));
    EXPECT_THAT(status.message(), HasSubstr(rank.member == 0 ? "4004 bytes" : "4000 bytes"));
  });
}

TEST(HostLink, WantsNameTheStreamsOfABlockedWork) {
  run_hosts({0, 1}, [&](HostRank& rank) {
    collective::hosts::HostLink& link = rank.group.hosts();
    std::byte byte{};
    EXPECT_TRUE(link.wants().empty());
    if (rank.member == 0) {
      link.begin_work(1, 1);
      link.queue_receive(1, &byte, 1);
      link.pump();

      ASSERT_EQ(link.wants().size(), 1u);
      EXPECT_GE(link.wants()[0].descriptor, 0);
    }
  });
}

}  // namespace
}  // namespace hvd::testing
