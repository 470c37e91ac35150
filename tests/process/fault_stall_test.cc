// A rank that is late: the others say who and what is missing, and give up only when told to.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::seconds;

constexpr int kReported = 0;

std::string all_stderr(const std::vector<RankOutcome>& outcomes) {
  std::string text;
  for (const RankOutcome& outcome : outcomes) text += outcome.stderr_text;
  return text;
}

// Waits in slices, so that the report is seen; returns the final status.
hvd_status wait_and_watch(RankProcess& rank, hvd_handle handle) {
  hvd_status status = HVD_TIMED_OUT;
  while (status == HVD_TIMED_OUT) {
    status = hvd_wait(handle, 50 * kMillisecond);
    if (stats_now().stall_warnings > 0) rank.board().set(kReported, 1);
  }
  return status;
}

TEST(FaultStall, TheReportNamesTensorRankAndWhatItDidLast) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"}};

  const auto outcomes = run_processes(
      3,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        ASSERT_EQ(float_allreduce("the/last/common", values).run(), HVD_OK) << hvd_last_error();
        if (rank.rank() == 1) {
          EXPECT_TRUE(rank.board().wait_at_least(kReported, 1, seconds(20)))
              << "nobody reported the stall";
          EXPECT_EQ(float_allreduce("late/tensor", values).run(), HVD_OK) << hvd_last_error();
        } else {
          const hvd_handle handle = float_allreduce("late/tensor", values).submitted();
          EXPECT_EQ(wait_and_watch(rank, handle), HVD_OK) << hvd_last_error();
          EXPECT_EQ(hvd_release(handle), HVD_OK);
        }
      },
      options);

  const std::string text = all_stderr(outcomes);
  EXPECT_NE(text.find("late/tensor"), std::string::npos) << text;
  EXPECT_NE(text.find("the/last/common"), std::string::npos) << text;
  EXPECT_NE(text.find("1: ["), std::string::npos) << "missing ranks with their tensors: " << text;
  EXPECT_TRUE(outcomes[1].stderr_text.find("late/tensor") == std::string::npos)
      << "the late rank has nothing to report: " << outcomes[1].stderr_text;
}

TEST(FaultStall, TheReportTellsUnnamedOperationsApart) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"}};

  const auto outcomes = run_processes(
      2,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        for (int i = 0; i < 3; ++i)
          ASSERT_EQ(float_allreduce("", values).run(), HVD_OK) << hvd_last_error();
        if (rank.rank() == 1) {
          EXPECT_TRUE(rank.board().wait_at_least(kReported, 1, seconds(20)));
          EXPECT_EQ(float_allreduce("", values).run(), HVD_OK) << hvd_last_error();
        } else {
          const hvd_handle handle = float_allreduce("", values).submitted();
          EXPECT_EQ(wait_and_watch(rank, handle), HVD_OK) << hvd_last_error();
          EXPECT_EQ(hvd_release(handle), HVD_OK);
        }
      },
      options);

  EXPECT_NE(outcomes[0].stderr_text.find("1: [allreduce 'allreduce.noname.4'"), std::string::npos)
      << outcomes[0].stderr_text;
}

TEST(FaultStall, TheLimitEndsTheJobOnAllRanks) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"},
                         {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "2"}};
  run_processes(
      3,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        if (rank.rank() == 1) {
          EXPECT_TRUE(rank.board().wait_at_least(kReported, 1, seconds(30)));
          EXPECT_EQ(float_allreduce("stalled", values).run(), HVD_STALLED) << hvd_last_error();
          return;
        }
        const int64_t begin = monotonic_ns();

        EXPECT_EQ(float_allreduce("stalled", values).run(), HVD_STALLED);

        const int64_t waited = monotonic_ns() - begin;
        EXPECT_GT(waited, kSecond * 19 / 10);
        EXPECT_LT(waited, kSecond * 4 + kSecond * kTimeFactor / 2);
        EXPECT_NE(std::string(hvd_last_error()).find("stalled"), std::string::npos)
            << hvd_last_error();
        EXPECT_NE(std::string(hvd_last_error()).find("1"), std::string::npos) << hvd_last_error();
        rank.board().set(kReported, 1);
      },
      options);
}

TEST(FaultStall, TheCheckCanBeDisabled) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"},
                         {"HOROVOD_STALL_CHECK_DISABLE", "1"}};
  const auto outcomes = run_processes(
      2,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        if (rank.rank() == 0) {
          const hvd_handle handle = float_allreduce("quiet", values).submitted();
          EXPECT_EQ(hvd_wait(handle, kSecond * 5 / 2), HVD_TIMED_OUT);
          EXPECT_EQ(stats_now().stall_warnings, 0u);
          rank.board().set(kReported, 1);
          finish(handle);
        } else {
          EXPECT_TRUE(rank.board().wait_at_least(kReported, 1, seconds(20)));
          EXPECT_EQ(float_allreduce("quiet", values).run(), HVD_OK) << hvd_last_error();
        }
      },
      options);
  EXPECT_EQ(all_stderr(outcomes).find("quiet"), std::string::npos);
}

}  // namespace
}  // namespace hvd::testing
