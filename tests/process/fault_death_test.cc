// A rank dies: every survivor learns it at once, by name, wherever the operation was, and can go on
// without it.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
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

// Values of the board.
constexpr int kReady = 0;     // ranks that are where the test wants them
constexpr int kKilledAt = 1;  // when the rank was killed, monotonic
constexpr int kNever = 2;     // never set: the victim waits here

constexpr int64_t kNoticeLimitNs = int64_t{50} * 1000000 * kTimeFactor;

// `status` is what a survivor got; it must name the dead rank and have come at once.
void expect_lost(RankProcess& rank, hvd_status status, int dead, int64_t since) {
  const int64_t now = monotonic_ns();
  EXPECT_EQ(status, HVD_PEER_LOST) << hvd_status_name(status) << ": " << hvd_last_error();
  EXPECT_NE(std::string(hvd_last_error()).find("rank " + std::to_string(dead)), std::string::npos)
      << hvd_last_error();
  EXPECT_LT(now - since, kNoticeLimitNs) << "rank " << rank.rank() << " was told too late";
}

void expect_failed_for_good(RankProcess& rank, int dead) {
  std::vector<float> values(10, 1.0f);
  hvd_handle handle = 0;
  EXPECT_EQ(float_allreduce("afterwards", values).submit(&handle), HVD_PEER_LOST);
  EXPECT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_PEER_LOST);
  EXPECT_NE(std::string(hvd_last_error()).find("rank " + std::to_string(dead)), std::string::npos)
      << "the first cause stays: " << hvd_last_error();
  EXPECT_EQ(hvd_is_initialized(), 1);
  EXPECT_EQ(hvd_rank(), rank.rank());
}

ProcessOptions killing(int victim, std::function<void(Supervisor&)> when) {
  ProcessOptions options;
  options.expected_signals = {{victim, SIGKILL}};
  options.supervise = [victim, when = std::move(when)](Supervisor& supervisor) {
    when(supervisor);
    supervisor.board().set(kKilledAt, monotonic_ns());
    supervisor.kill(victim);
  };
  return options;
}

struct Death {
  int size, victim;
};
class FaultDeath : public ::testing::TestWithParam<Death> {};
INSTANTIATE_TEST_SUITE_P(Victims, FaultDeath,
                         ::testing::Values(Death{2, 0}, Death{2, 1}, Death{4, 0}, Death{4, 2}),
                         [](const auto& death) {
                           return "Rank" + std::to_string(death.param.victim) + "Of" +
                                  std::to_string(death.param.size);
                         });

TEST_P(FaultDeath, BeforeItSubmitsFailsTheWaitingPeers) {
  const auto [size, victim] = GetParam();
  const int waiting = size - 1;
  run_processes(
      size,
      [victim = victim](RankProcess& rank) {
        std::vector<float> values(1000, 1.0f);
        ASSERT_EQ(float_allreduce("warm up", values).run(), HVD_OK) << hvd_last_error();
        if (rank.rank() == victim) {
          rank.board().wait_at_least(kNever, 1, seconds(100));
          return;
        }
        const hvd_handle handle = float_allreduce("waits", values).submitted();
        rank.board().add(kReady, 1);
        rank.phase("waiting for the victim");

        const hvd_status status = hvd_wait(handle, HVD_FOREVER);

        expect_lost(rank, status, victim, rank.board().get(kKilledAt));
        expect_failed_for_good(rank, victim);
        EXPECT_EQ(hvd_release(handle), HVD_OK);
      },
      killing(victim, [waiting](Supervisor& supervisor) {
        EXPECT_TRUE(supervisor.board().wait_at_least(kReady, waiting, seconds(20)));
      }));
}

TEST_P(FaultDeath, AtRestIsToldToTheNextCall) {
  const auto [size, victim] = GetParam();
  run_processes(
      size,
      [victim = victim](RankProcess& rank) {
        std::vector<float> values(1000, 1.0f);
        ASSERT_EQ(float_allreduce("warm up", values).run(), HVD_OK) << hvd_last_error();
        rank.board().add(kReady, 1);
        if (rank.rank() == victim) {
          rank.board().wait_at_least(kNever, 1, seconds(100));
          return;
        }
        ASSERT_TRUE(rank.board().wait_at_least(kKilledAt, 1, seconds(20)));
        const int64_t called = monotonic_ns();

        const hvd_status status = float_allreduce("next", values).run();

        expect_lost(rank, status, victim, std::max(called, rank.board().get(kKilledAt)));
      },
      killing(victim, [size = size](Supervisor& supervisor) {
        EXPECT_TRUE(supervisor.board().wait_at_least(kReady, size, seconds(20)));
      }));
}

// 64 MB per operation, so that nearly every kill hits the middle of one; less where every access is
// instrumented, because the kernel announces a death only after it has taken the memory apart.
void loop_until_lost(RankProcess& rank, int victim, Placement placement) {
  constexpr size_t kBytes = size_t{kTimeFactor == 1 ? 64 : 8} << 20;
  TestBuffer buffer(placement, kBytes);
  const Call call = Call(HVD_ALLREDUCE, "large", HVD_FLOAT32, {static_cast<int64_t>(kBytes / 4)})
                        .in_place(buffer.data())
                        .op(HVD_OP_MAX);
  hvd_status status = HVD_OK;
  for (int step = 0; status == HVD_OK; ++step) {
    rank.phase("large step " + std::to_string(step));
    status = call.run();
    if (step == 0) rank.board().add(kReady, 1);
  }
  expect_lost(rank, status, victim, rank.board().get(kKilledAt));
}

TEST_P(FaultDeath, InTheMiddleOfALargeOperation) {
  const auto [size, victim] = GetParam();
  std::mt19937 random(static_cast<unsigned>(size * 10 + victim));
  for (int round = 0; round < 3; ++round) {
    const milliseconds moment(random() % 60);
    for (const Placement placement : {Placement::kPrivate, Placement::kShared}) {
      run_processes(
          size,
          [victim = victim, placement](RankProcess& rank) {
            loop_until_lost(rank, victim, placement);
          },
          killing(victim, [size = size, moment](Supervisor& supervisor) {
            EXPECT_TRUE(supervisor.board().wait_at_least(kReady, size, seconds(100)));
            std::this_thread::sleep_for(moment);  // a moment of its own in every round
          }));
    }
  }
}

TEST_P(FaultDeath, WhileManySmallOperationsFly) {
  const auto [size, victim] = GetParam();
  run_processes(
      size,
      [victim = victim](RankProcess& rank) {
        std::vector<float> values(16, 0.0f);
        const Call call = float_allreduce("small", values);
        hvd_status status = HVD_OK;
        for (int step = 0; status == HVD_OK; ++step) {
          status = call.run();
          if (step == 1000) rank.board().add(kReady, 1);
        }
        expect_lost(rank, status, victim, rank.board().get(kKilledAt));
      },
      killing(victim, [size = size](Supervisor& supervisor) {
        EXPECT_TRUE(supervisor.board().wait_at_least(kReady, size, seconds(60)));
      }));
}

TEST_P(FaultDeath, FailsEveryPendingHandleAndEveryCallback) {
  const auto [size, victim] = GetParam();
  static std::atomic<int> callbacks;
  run_processes(
      size,
      [victim = victim](RankProcess& rank) {
        if (rank.rank() == victim) {
          rank.board().wait_at_least(kNever, 1, seconds(100));
          return;
        }
        std::vector<std::vector<float>> values(20, std::vector<float>(100, 1.0f));
        std::vector<hvd_handle> handles;
        for (size_t i = 0; i < values.size(); ++i) {
          handles.push_back(float_allreduce("t" + std::to_string(i), values[i])
                                .on_complete(
                                    [](void*, hvd_handle, hvd_status status, const char*) {
                                      if (status == HVD_PEER_LOST) callbacks.fetch_add(1);
                                    },
                                    nullptr)
                                .submitted());
        }
        rank.board().add(kReady, 1);

        const hvd_status status = hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER);

        expect_lost(rank, status, victim, rank.board().get(kKilledAt));
        for (const hvd_handle handle : handles) {
          EXPECT_EQ(hvd_poll(handle), HVD_PEER_LOST);
          EXPECT_EQ(hvd_release(handle), HVD_OK);
        }
        EXPECT_EQ(callbacks.load(), 20);
      },
      killing(victim, [size = size](Supervisor& supervisor) {
        EXPECT_TRUE(supervisor.board().wait_at_least(kReady, size - 1, seconds(20)));
      }));
}

TEST_P(FaultDeath, TheSurvivorsGoOnInASmallerJob) {
  const auto [size, victim] = GetParam();
  run_processes(
      size,
      [victim = victim](RankProcess& rank) {
        std::vector<float> values(1000, 1.0f);
        if (rank.rank() == victim) {
          rank.board().add(kReady, 1);
          rank.board().wait_at_least(kNever, 1, seconds(100));
          return;
        }
        rank.board().add(kReady, 1);
        EXPECT_EQ(float_allreduce("lost", values).run(), HVD_PEER_LOST);
        ASSERT_EQ(hvd_shutdown(), HVD_OK) << hvd_last_error();

        const int place = rank.rank() < victim ? rank.rank() : rank.rank() - 1;
        rank.phase("second job");
        ASSERT_EQ(rank.init_as(place, rank.size() - 1, 2), HVD_OK) << hvd_last_error();

        values.assign(1000, 1.0f);
        ASSERT_EQ(float_allreduce("again", values).run(), HVD_OK) << hvd_last_error();
        EXPECT_EQ(values, std::vector<float>(1000, static_cast<float>(rank.size() - 1)));
      },
      killing(victim, [size = size](Supervisor& supervisor) {
        EXPECT_TRUE(supervisor.board().wait_at_least(kReady, size, seconds(20)));
      }));
}

TEST(FaultExit, WithoutShutdownIsADeathToo) {
  run_processes(3, [](RankProcess& rank) {
    std::vector<float> values(100, 1.0f);
    ASSERT_EQ(float_allreduce("warm up", values).run(), HVD_OK) << hvd_last_error();
    if (rank.rank() == 1) {
      rank.board().wait_at_least(kReady, 2, seconds(20));
      rank.board().set(kKilledAt, monotonic_ns());
      ::syscall(SYS_exit_group, 0);  // not _exit: instrumented builds linger there
    }
    const hvd_handle handle = float_allreduce("waits", values).submitted();
    rank.board().add(kReady, 1);

    const hvd_status status = hvd_wait(handle, HVD_FOREVER);

    expect_lost(rank, status, 1, rank.board().get(kKilledAt));
    EXPECT_EQ(hvd_release(handle), HVD_OK);
  });
}

TEST(FaultDeathInASet, OfAStrangerLeavesTheOperationOfTheMembersTheChoiceOfOneStatus) {
  ProcessOptions options = killing(2, [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(kReady, 3, seconds(20)));
  });
  options.process_sets = {{0, 1}};
  run_processes(
      3,
      [](RankProcess& rank) {
        std::vector<float> values(100, 1.0f);
        rank.board().add(kReady, 1);
        if (rank.rank() == 2) {
          rank.board().wait_at_least(kNever, 1, seconds(100));
          return;
        }
        // The job has lost a rank: sooner or later every call says so, and none hangs.
        hvd_status status = HVD_OK;
        while (status == HVD_OK) status = float_allreduce("members", values).set(1).run();
        expect_lost(rank, status, 2, rank.board().get(kKilledAt));
      },
      options);
}

}  // namespace
}  // namespace hvd::testing
