// A rank that others wait for is sent the signal it asked for, once per stall report.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"

namespace hvd::testing {
namespace {

int handler_pipe[2] = {-1, -1};

void install_handler(int number) {
  ASSERT_EQ(pipe(handler_pipe), 0);
  struct sigaction action = {};
  action.sa_handler = [](int) { (void)!write(handler_pipe[1], "s", 1); };
  ASSERT_EQ(sigaction(number, &action, nullptr), 0);
}

// True: the handler has run within the time.
bool handler_ran(int limit_ms) {
  pollfd item{handler_pipe[0], POLLIN, 0};
  // The signal itself may end the wait.
  int got = poll(&item, 1, limit_ms);
  if (got < 0) got = poll(&item, 1, limit_ms);
  if (got != 1) return false;
  char byte = 0;
  return read(handler_pipe[0], &byte, 1) == 1;
}

ProcessOptions quick_reports() {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"}};
  return options;
}

void expect_signal_of(int late, int number) {
  const auto outcomes = run_processes(
      2,
      [&](RankProcess& rank) {
        std::vector<float> values(4, 1.0f);
        if (rank.rank() == late) {
          install_handler(number);
          ASSERT_EQ(hvd_set_stall_signal(number), HVD_OK) << hvd_last_error();
          EXPECT_TRUE(handler_ran(20000 * kTimeFactor)) << "the late rank was not told";
        }
        EXPECT_EQ(float_allreduce("awaited", values).run(), HVD_OK) << hvd_last_error();
      },
      quick_reports());
  EXPECT_NE(outcomes[0].stderr_text.find("awaited"), std::string::npos) << outcomes[0].stderr_text;
}

TEST(StallSignal, ComesToTheRankThatOthersWaitFor) { expect_signal_of(1, SIGUSR1); }

TEST(StallSignal, ComesToTheReportingRankItself) { expect_signal_of(0, SIGRTMIN + 9); }

TEST(StallSignal, StaysForLaterInitsAndComesToEachReport) {
  auto options = quick_reports();
  options.init = ProcessOptions::Init::kByFunction;
  run_processes(
      2,
      [](RankProcess& rank) {
        if (rank.rank() == 1) {
          install_handler(SIGUSR2);
          ASSERT_EQ(hvd_set_stall_signal(SIGUSR2), HVD_OK) << "before init";
        }
        for (int life = 0; life < 2; ++life) {
          ASSERT_EQ(rank.init(), HVD_OK) << hvd_last_error();
          std::vector<float> values(4, 1.0f);
          if (rank.rank() == 1) {
            EXPECT_TRUE(handler_ran(20000 * kTimeFactor)) << "first report, life " << life;
            EXPECT_TRUE(handler_ran(20000 * kTimeFactor)) << "second report, life " << life;
          }
          EXPECT_EQ(float_allreduce("awaited", values).run(), HVD_OK) << hvd_last_error();
          ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
          ASSERT_EQ(hvd_shutdown(), HVD_OK);
        }
      },
      options);
}

TEST(StallSignal, ZeroTurnsItOff) {
  run_processes(
      3,
      [](RankProcess& rank) {
        if (rank.rank() == 1) {  // the default action of this signal is to end the process
          ASSERT_EQ(hvd_set_stall_signal(SIGUSR1), HVD_OK);
          ASSERT_EQ(hvd_set_stall_signal(0), HVD_OK);
        }
        if (rank.rank() == 2) {
          install_handler(SIGUSR1);
          ASSERT_EQ(hvd_set_stall_signal(SIGUSR1), HVD_OK);
        }
        ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
        // Rank 0 waits for both; what rank 2 is told, rank 1 would have been told before.
        if (rank.rank() == 2) {
          EXPECT_TRUE(handler_ran(20000 * kTimeFactor));
          EXPECT_TRUE(handler_ran(20000 * kTimeFactor));
          rank.board().set(0, 1);
        }
        if (rank.rank() == 1) {
          ASSERT_TRUE(rank.board().wait_at_least(0, 1, std::chrono::seconds(40 * kTimeFactor)));
        }
        std::vector<float> values(4, 1.0f);
        EXPECT_EQ(float_allreduce("awaited", values).run(), HVD_OK) << hvd_last_error();
      },
      quick_reports());
}

TEST(StallSignal, NumbersThatNoHandlerCanCatchAreRefused) {
  EXPECT_EQ(hvd_set_stall_signal(SIGKILL), HVD_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_set_stall_signal(SIGSTOP), HVD_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_set_stall_signal(-1), HVD_INVALID_ARGUMENT);
  EXPECT_EQ(hvd_set_stall_signal(1000), HVD_INVALID_ARGUMENT);
  EXPECT_STRNE(hvd_last_error(), "");
}

}  // namespace
}  // namespace hvd::testing
