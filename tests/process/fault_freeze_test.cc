// A rank that stops running (SIGSTOP) is given up after HOROVOD_FROZEN_PEER_TIME_SECONDS, and not
// before.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kRunning = 0;
constexpr int kStoppedAt = 1;
constexpr int kGivenUp = 2;

// Works until the job fails; remembers that the work has begun.
hvd_status loop_until_failure(RankProcess& rank, size_t count) {
  std::vector<float> values(count, 0.0f);
  const Call call = float_allreduce("loop", values);
  hvd_status status = HVD_OK;
  for (int step = 0; status == HVD_OK; ++step) {
    status = call.run();
    if (step == 2) rank.board().add(kRunning, 1);
  }
  return status;
}

void expect_given_up(RankProcess& rank, hvd_status status) {
  const int64_t waited = monotonic_ns() - rank.board().get(kStoppedAt);
  EXPECT_EQ(status, HVD_PEER_LOST) << hvd_status_name(status);
  const std::string said = hvd_last_error();
  EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  // Not the time since it was stopped: on a busy machine its last sign of life is older than that.
  const std::string words = "gives no sign of life for ";
  const size_t at = said.find(words);
  EXPECT_NE(at, std::string::npos) << said;
  if (at != std::string::npos) EXPECT_GE(std::stod(said.substr(at + words.size())), 1.0) << said;
  EXPECT_LT(waited, kSecond * 5 / 2 + kSecond * kTimeFactor / 4);
  rank.board().add(kGivenUp, 1);
}

class FaultFreeze : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Counts, FaultFreeze, ::testing::Values(16, 3000000));

TEST_P(FaultFreeze, LongerThanTheLimitIsALoss) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_FROZEN_PEER_TIME_SECONDS", "1"}};
  options.expected_signals = {{1, SIGKILL}};
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(kRunning, 3, seconds(60)));
    supervisor.board().set(kStoppedAt, monotonic_ns());
    supervisor.stop(1);
    EXPECT_TRUE(supervisor.board().wait_at_least(kGivenUp, 2, seconds(20 * kTimeFactor)));
    supervisor.kill(1);
  };
  run_processes(
      3,
      [](RankProcess& rank) {
        const hvd_status status = loop_until_failure(rank, GetParam());
        expect_given_up(rank, status);
      },
      options);
}

TEST(FaultFreezeAndBack, ARankThatWakesUpTooLateIsToldSo) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_FROZEN_PEER_TIME_SECONDS", "1"}};
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(kRunning, 3, seconds(60)));
    supervisor.board().set(kStoppedAt, monotonic_ns());
    supervisor.stop(1);
    EXPECT_TRUE(supervisor.board().wait_at_least(kGivenUp, 2, seconds(20 * kTimeFactor)));
    supervisor.resume(1);
  };
  run_processes(
      3,
      [](RankProcess& rank) {
        const hvd_status status = loop_until_failure(rank, 1000);
        if (rank.rank() == 1) {
          EXPECT_NE(status, HVD_OK) << "never hangs, never succeeds alone";
        } else {
          expect_given_up(rank, status);
        }
      },
      options);
}

TEST(FaultFreezeAndBack, ShorterThanTheLimitIsNoFault) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_FROZEN_PEER_TIME_SECONDS", "10"}};
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(kRunning, 3, seconds(60)));
    for (int round = 0; round < 6; ++round) {
      supervisor.stop(round % 3);
      std::this_thread::sleep_for(milliseconds(150));  // the length of the freeze
      supervisor.resume(round % 3);
    }
    supervisor.board().set(kGivenUp, 1);
  };
  run_processes(
      3,
      [](RankProcess& rank) {
        for (int step = 0;; ++step) {
          std::vector<float> values(step % 2 == 0 ? 100 : 100000, 1.0f);
          float stop = rank.rank() == 0 ? static_cast<float>(rank.board().get(kGivenUp)) : 0.0f;
          ASSERT_EQ(float_allreduce("work" + std::to_string(step % 2), values).run(), HVD_OK)
              << hvd_last_error();
          ASSERT_EQ(values[0], 3.0f);
          ASSERT_EQ(Call(HVD_ALLREDUCE, "stop", HVD_FLOAT32, {1}).in_place(&stop).run(), HVD_OK)
              << hvd_last_error();
          if (step == 2) rank.board().add(kRunning, 1);
          if (stop > 0.0f) break;
        }
      },
      options);
}

TEST(FaultFreezeAndBack, ABusyRankIsNotFrozen) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_FROZEN_PEER_TIME_SECONDS", "0.5"}};
  run_processes(
      2,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        ASSERT_EQ(float_allreduce("a", values).run(), HVD_OK) << hvd_last_error();
        if (rank.rank() == 1) {  // computes for longer than the limit without calling the library
          const int64_t until = monotonic_ns() + kSecond * 3 / 2;
          volatile double sink = 0;
          while (monotonic_ns() < until) sink = sink + 1.0;
        }
        EXPECT_EQ(float_allreduce("b", values).run(), HVD_OK) << hvd_last_error();
      },
      options);
}

}  // namespace
}  // namespace hvd::testing
