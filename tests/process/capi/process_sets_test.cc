// Process sets over the C ABI: static and dynamic, side by side, refused and reused.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using Ranks = std::vector<int32_t>;

int32_t add_set(const Ranks& ranks) {
  return hvd_process_set_add(ranks.data(), static_cast<int32_t>(ranks.size()));
}

Ranks ranks_of(int32_t id) {
  Ranks ranks(16, -1);
  const int32_t count = hvd_process_set_ranks(id, ranks.data(), 16);
  ranks.resize(static_cast<size_t>(std::max(count, 0)));
  return ranks;
}

TEST(CapiProcessSets, StaticSetsRunOperationsOfTheirOwnMembers) {
  ProcessOptions options;
  options.process_sets = {{0, 2}, {1, 3}, {3}};
  run_processes(
      4,
      [](RankProcess& rank) {
        const int32_t mine = rank.rank() % 2 == 0 ? 1 : 2;
        const int32_t foreign = 3 - mine;
        EXPECT_EQ(hvd_process_set_count(), 4);
        EXPECT_EQ(ranks_of(1), (Ranks{0, 2}));
        EXPECT_EQ(ranks_of(0), (Ranks{0, 1, 2, 3}));
        EXPECT_EQ(hvd_process_set_rank(mine), rank.rank() / 2);
        EXPECT_EQ(hvd_process_set_size(foreign), 2);
        EXPECT_EQ(hvd_process_set_included(mine), 1);
        EXPECT_EQ(hvd_process_set_included(foreign), 0);
        EXPECT_EQ(hvd_process_set_rank(foreign), HVD_PROCESS_SET_ERROR_FOREIGN_SET);

        for (const size_t count : {1u, 500u, 50000u}) {
          expect_set_sum(mine, "same name in both sets", count);
          expect_set_sum(0, "same name in both sets", count);
        }
        if (rank.rank() == 3) expect_set_sum(3, "alone");
      },
      options);
}

// Everything that rank 1 of {0, 2, 3} does not take part in.
void expect_every_kind_among_members() {
  const auto part = static_cast<size_t>(hvd_process_set_rank(1));
  std::vector<Bytes> inputs;
  for (const int r : {0, 2, 3}) inputs.push_back(make_data({.rank = r, .count = 12}));
  Bytes mine = inputs[part];
  const auto kept = [&](hvd_kind kind) {
    const Call call = Call(kind, "kept" + std::to_string(kind), HVD_FLOAT32, {12});
    const hvd_handle handle = Call(call).input(mine.data()).set(1).submitted();
    EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
    const Bytes bytes = output_bytes(handle);
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    return bytes;
  };
  const auto cast = [&](int root) {
    return Call(HVD_BROADCAST, "cast", HVD_FLOAT32, {12}).in_place(mine.data()).set(1).root(root);
  };

  EXPECT_EQ(kept(HVD_ALLGATHER), reference_allgather(inputs));
  EXPECT_EQ(kept(HVD_REDUCESCATTER),
            reference_reducescatter({.reduce = {}, .rows = 12, .receiver = static_cast<int>(part)},
                                    inputs));
  const std::vector<std::vector<int32_t>> even(3, {4, 4, 4});
  EXPECT_EQ(kept(HVD_ALLTOALL), reference_alltoall(inputs, even, 4, static_cast<int>(part)));
  EXPECT_EQ(cast(2).run(), HVD_OK) << hvd_last_error();
  EXPECT_EQ(mine, inputs[1]);
  EXPECT_EQ(cast(1).run(), HVD_INVALID_ARGUMENT) << "rank 1 is no member";
  EXPECT_EQ(hvd_barrier(1, HVD_FOREVER), HVD_OK) << hvd_last_error();
}

TEST(CapiProcessSets, EveryKindUsesSetRanksForOrderAndGlobalRanksForRoots) {
  ProcessOptions options;
  options.process_sets = {{0, 2, 3}};
  run_processes(
      4,
      [](RankProcess& rank) {
        if (rank.rank() != 1) expect_every_kind_among_members();
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();  // nobody leaves early
      },
      options);
}

TEST(CapiProcessSets, NonMembersAndUnknownSetsAreRefused) {
  ProcessOptions options;
  options.process_sets = {{0, 1}};
  run_processes(
      3,
      [](RankProcess& rank) {
        std::vector<float> values(4, 1.0f);
        hvd_handle handle = 0;
        EXPECT_EQ(float_allreduce("x", values).set(9).submit(&handle), HVD_INVALID_ARGUMENT);
        EXPECT_EQ(hvd_barrier(9, HVD_FOREVER), HVD_INVALID_ARGUMENT);
        EXPECT_EQ(hvd_process_set_size(9), HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
        EXPECT_EQ(hvd_process_set_rank(-3), HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
        if (rank.rank() == 2) {
          EXPECT_EQ(float_allreduce("x", values).set(1).submit(&handle), HVD_INVALID_ARGUMENT);
          EXPECT_NE(std::string(hvd_last_error()).find("2"), std::string::npos) << hvd_last_error();
          EXPECT_EQ(hvd_barrier(1, HVD_FOREVER), HVD_INVALID_ARGUMENT);
        }
        expect_set_sum(0, "goes on");
      },
      options);
}

TEST(CapiProcessSets, DynamicSetsNeedPermission) {
  run_processes(2, [](RankProcess&) {
    EXPECT_EQ(add_set({0}), HVD_PROCESS_SET_ERROR_DYNAMIC);
    EXPECT_EQ(hvd_process_set_remove(1), HVD_PROCESS_SET_ERROR_DYNAMIC);
    EXPECT_EQ(hvd_process_set_count(), 1);
  });
}

TEST(CapiProcessSets, DynamicSetsComeAndGoAndTheirIdsAreReused) {
  ProcessOptions options;
  options.dynamic_process_sets = true;
  run_processes(
      4,
      [](RankProcess& rank) {
        const int32_t first = add_set({3, 0});  // any order
        const int32_t second = add_set({1, 2, 3});
        EXPECT_EQ(first, 1);
        EXPECT_EQ(second, 2);
        EXPECT_EQ(ranks_of(first), (Ranks{0, 3}));
        EXPECT_EQ(add_set({0, 3}), HVD_PROCESS_SET_ERROR_EXISTING_SET);
        if (hvd_process_set_included(first) == 1) expect_set_sum(first, "t");
        if (hvd_process_set_included(second) == 1) expect_set_sum(second, "t", 30000);

        EXPECT_GE(hvd_process_set_remove(first), 0);
        EXPECT_EQ(hvd_process_set_size(first), HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
        std::vector<float> values(4);
        hvd_handle handle = 0;
        EXPECT_EQ(float_allreduce("t", values).set(first).submit(&handle), HVD_INVALID_ARGUMENT);
        int32_t ids[8] = {};
        ASSERT_EQ(hvd_process_set_ids(ids, 8), 2);
        EXPECT_EQ(ids[1], second);

        for (int round = 0; round < 30; ++round) {
          rank.phase("reuse round " + std::to_string(round));
          const int32_t again = add_set({0, 1});
          EXPECT_EQ(again, first) << "the removed id is used again";
          if (rank.rank() < 2) expect_set_sum(again, "t", round % 2 == 0 ? 10 : 20000);
          ASSERT_GE(hvd_process_set_remove(again), 0);
        }
        expect_set_sum(0, "t");
      },
      options);
}

TEST(CapiProcessSets, BadDynamicSetsAreRefusedEverywhere) {
  ProcessOptions options;
  options.dynamic_process_sets = true;
  run_processes(
      2,
      [](RankProcess&) {
        EXPECT_LT(add_set({}), 0);
        EXPECT_LT(add_set({0, 0}), 0);
        EXPECT_LT(add_set({0, 2}), 0);
        EXPECT_LT(add_set({-1}), 0);
        EXPECT_LT(hvd_process_set_add(nullptr, 2), 0);
        EXPECT_EQ(add_set({0, 1}), HVD_PROCESS_SET_ERROR_EXISTING_SET) << "the global set";
        EXPECT_LT(hvd_process_set_remove(0), 0) << "the global set stays";
        EXPECT_EQ(hvd_process_set_remove(5), HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
        expect_set_sum(0, "goes on");
      },
      options);
}

TEST(CapiProcessSets, RemovalAbortsWhatIsPendingInTheSet) {
  ProcessOptions options;
  options.dynamic_process_sets = true;
  run_processes(
      3,
      [](RankProcess& rank) {
        const int32_t id = add_set({0, 1});
        ASSERT_GT(id, 0);
        std::vector<float> values(10, 1.0f);
        hvd_handle handle = 0;
        if (rank.rank() == 0) handle = float_allreduce("alone", values).set(id).submitted();

        ASSERT_GE(hvd_process_set_remove(id), 0);

        if (rank.rank() == 0) {
          EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_ABORTED);
          EXPECT_NE(std::string(hvd_last_error()).find("removed"), std::string::npos)
              << hvd_last_error();
          EXPECT_EQ(hvd_release(handle), HVD_OK);
        }
        expect_set_sum(0, "goes on");
      },
      options);
}

TEST(CapiProcessSets, SetsWorkAtTheSameTimeFromShuffledSubmissions) {
  ProcessOptions options;
  options.process_sets = {{0, 1}, {1, 2}, {0, 2}};
  run_processes(
      3,
      [](RankProcess& rank) {
        for (int round = 0; round < 30; ++round) {
          rank.phase("round " + std::to_string(round));
          std::vector<int32_t> order;
          for (int32_t id = 0; id < 4; ++id) {
            if (hvd_process_set_included(id) == 1) order.push_back(id);
          }
          std::rotate(order.begin(), order.begin() + (round + rank.rank()) % 3, order.end());
          std::vector<std::vector<float>> values(order.size(), std::vector<float>(2000, 1.0f));
          std::vector<hvd_handle> handles;
          for (size_t i = 0; i < order.size(); ++i) {
            handles.push_back(float_allreduce("t", values[i]).set(order[i]).submitted());
          }
          ASSERT_EQ(hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER), HVD_OK)
              << hvd_last_error();
          for (size_t i = 0; i < order.size(); ++i) {
            EXPECT_EQ(values[i], std::vector<float>(2000, order[i] == 0 ? 3.0f : 2.0f));
            EXPECT_EQ(hvd_release(handles[i]), HVD_OK);
          }
        }
      },
      options);
}

TEST(CapiProcessSets, StaticSetsThatExistAlreadyAreLeftOut) {
  ProcessOptions options;
  options.process_sets = {{0, 1}, {1, 0}, {2, 1, 0}, {1, 2}};
  run_processes(
      3,
      [](RankProcess&) {
        ASSERT_EQ(hvd_is_initialized(), 1) << hvd_last_error();
        EXPECT_EQ(hvd_process_set_count(), 3);
        EXPECT_EQ(ranks_of(1), (Ranks{0, 1}));
        EXPECT_EQ(ranks_of(2), (Ranks{1, 2})) << "ids have no holes";
        for (const int32_t id : {0, 1, 2}) {
          if (hvd_process_set_included(id) == 1) expect_set_sum(id, "t");
        }
      },
      options);
}

class CapiBadStaticSets : public ::testing::TestWithParam<Ranks> {};
INSTANTIATE_TEST_SUITE_P(Sets, CapiBadStaticSets,
                         ::testing::Values(Ranks{0, 0}, Ranks{0, 5}, Ranks{-1}));

TEST_P(CapiBadStaticSets, FailInit) {
  ProcessOptions options;
  options.init = ProcessOptions::Init::kByFunction;
  options.process_sets = {GetParam()};
  run_processes(
      2,
      [](RankProcess& rank) {
        EXPECT_EQ(rank.init(), HVD_INVALID_ARGUMENT);
        EXPECT_STRNE(hvd_last_error(), "");
        EXPECT_EQ(hvd_is_initialized(), 0);
      },
      options);
}

}  // namespace
}  // namespace hvd::testing
