// Join over the C ABI: ranks with fewer batches contribute zeros until everybody has joined.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

class CapiJoin : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiJoin, ::testing::Values(1, 2, 3, 4));

// How many of `size` ranks still work in `step` when rank r has 3 + 4 r batches.
int workers_in(int step, int size) {
  int count = 0;
  for (int r = 0; r < size; ++r) count += step < 3 + 4 * r ? 1 : 0;
  return count;
}

// One epoch with uneven numbers of batches. Every rank gets the same answer.
int run_epoch(RankProcess& rank, int epoch) {
  const int batches = 3 + 4 * rank.rank();
  for (int step = 0; step < batches; ++step) {
    rank.phase("epoch " + std::to_string(epoch) + " step " + std::to_string(step));
    const auto workers = static_cast<float>(workers_in(step, rank.size()));
    std::vector<float> sum(step % 2 == 0 ? 50 : 20000, 1.0f);
    std::vector<float> average(300, static_cast<float>(rank.size()));
    EXPECT_EQ(float_allreduce("sum" + std::to_string(step % 2), sum).run(), HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(float_allreduce("average", average).op(HVD_OP_AVERAGE).run(), HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(sum, std::vector<float>(sum.size(), workers));
    EXPECT_EQ(average, std::vector<float>(300, workers)) << "Average divides by the full size";
  }
  rank.phase("join of epoch " + std::to_string(epoch));
  int32_t last = -1;
  EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_OK) << hvd_last_error();
  return last;
}

TEST_P(CapiJoin, UnevenEpochsEndWithTheSameLastRankAndTrainingGoesOn) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (int epoch = 0; epoch < 5; ++epoch) {
      EXPECT_EQ(run_epoch(rank, epoch), rank.size() - 1);
    }
    std::vector<float> values(10, 1.0f);
    ASSERT_EQ(float_allreduce("after", values).run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(values, std::vector<float>(10, static_cast<float>(rank.size())));
  });
}

TEST_P(CapiJoin, JoinedRanksContributeZerosToEveryOperation) {
  run_processes(GetParam(), [](RankProcess& rank) {
    int32_t last = -1;
    if (rank.rank() == rank.size() - 1) {
      const bool alone = rank.size() == 1;
      if (!alone) {
        ASSERT_TRUE(rank.board().wait_at_least(0, rank.size() - 1, seconds(20)));
      }
      const struct {
        hvd_reduce_op op;
        float expected;
      } rows[] = {{HVD_OP_SUM, 5.0f},
                  {HVD_OP_MIN, alone ? 5.0f : 0.0f},
                  {HVD_OP_MAX, 5.0f},
                  {HVD_OP_PRODUCT, alone ? 5.0f : 0.0f},
                  {HVD_OP_ADASUM, 5.0f}};
      for (const auto& row : rows) {
        std::vector<float> values(40, 5.0f);
        EXPECT_EQ(float_allreduce("op" + std::to_string(row.op), values).op(row.op).run(), HVD_OK)
            << hvd_last_error();
        EXPECT_EQ(values, std::vector<float>(40, row.expected)) << "op " << row.op;
      }
    } else {
      rank.board().add(0, 1);
    }
    EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_OK) << hvd_last_error();
    EXPECT_EQ(last, rank.size() - 1);
  });
}

TEST_P(CapiJoin, OtherCollectivesFailWhileARankHasJoined) {
  if (GetParam() == 1) GTEST_SKIP() << "needs a rank that works on";
  run_processes(GetParam(), [](RankProcess& rank) {
    int32_t last = -1;
    if (rank.rank() != 0) {
      std::vector<float> values(12, 1.0f);
      const struct {
        hvd_kind kind;
        const char* name;
      } rows[] = {{HVD_ALLGATHER, "gather"},
                  {HVD_ALLTOALL, "exchange"},
                  {HVD_REDUCESCATTER, "scatter"},
                  {HVD_BROADCAST, "cast"}};
      for (const auto& row : rows) {
        rank.phase(row.name);
        Call call(row.kind, row.name, HVD_FLOAT32, {12});
        call.input(values.data()).root(1);
        if (row.kind == HVD_BROADCAST) call.output(values.data());
        const hvd_handle handle = call.submitted();
        EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_PRECONDITION_ERROR) << row.name;
        EXPECT_NE(std::string(hvd_last_error()).find(row.name), std::string::npos)
            << hvd_last_error();
        EXPECT_EQ(hvd_release(handle), HVD_OK);
      }
    }
    EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_OK) << hvd_last_error();
    std::vector<float> values(4, 1.0f);
    EXPECT_EQ(float_allreduce("after", values).run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(values[0], static_cast<float>(rank.size()));
  });
}

TEST_P(CapiJoin, AsAHandleItReportsTheLastRank) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const hvd_handle handle = Call(HVD_JOIN, "", HVD_FLOAT32, {}).submitted();
    ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
    hvd_output output = {};
    output.struct_size = sizeof(output);

    ASSERT_EQ(hvd_get_output(handle, 0, &output), HVD_OK) << hvd_last_error();

    rank.board().set(rank.rank(), output.last_joined_rank);
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
    for (int r = 0; r < rank.size(); ++r) EXPECT_EQ(rank.board().get(r), rank.board().get(0));
    EXPECT_GE(output.last_joined_rank, 0);
    EXPECT_LT(output.last_joined_rank, rank.size());
  });
}

TEST_P(CapiJoin, OperationsSubmittedBeforeTheJoinStillCountFully) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<std::vector<float>> tensors(20, std::vector<float>(500, 1.0f));
    std::vector<hvd_handle> handles;
    for (size_t i = 0; i < tensors.size(); ++i) {
      handles.push_back(float_allreduce("t" + std::to_string(i), tensors[i]).submitted());
    }
    int32_t last = -1;

    EXPECT_EQ(hvd_join(&last, HVD_FOREVER), HVD_OK) << hvd_last_error();

    for (size_t i = 0; i < tensors.size(); ++i) {
      finish(handles[i]);
      EXPECT_EQ(tensors[i], std::vector<float>(500, static_cast<float>(rank.size()))) << i;
    }
  });
}

}  // namespace
}  // namespace hvd::testing
