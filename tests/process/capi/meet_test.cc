// Process sets that only their members open: apart, at once, overlapping, again and again, and with
// members that do not come, disagree or die.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Ranks = std::vector<int32_t>;

constexpr int32_t kFirstMetId = 2048;

int32_t meet(const std::string& key, const Ranks& ranks, int64_t timeout_ns = HVD_FOREVER) {
  return hvd_process_set_meet(key.c_str(), ranks.data(), static_cast<int32_t>(ranks.size()),
                              timeout_ns);
}

void expect_global_sum(const std::string& name) { expect_set_sum(0, name); }

class CapiMeet : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, CapiMeet, ::testing::Values(1, 2, 3, 4));

TEST_P(CapiMeet, AllRanksMayMeetBesideTheGlobalSet) {
  run_processes(GetParam(), [](RankProcess& rank) {
    Ranks all;
    for (int r = rank.size() - 1; r >= 0; --r) all.push_back(r);  // any order

    const int32_t id = meet("everybody", all);

    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    rank.board().set(rank.rank(), id);
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
    for (int r = 0; r < rank.size(); ++r) EXPECT_EQ(rank.board().get(r), id) << "rank " << r;
    EXPECT_EQ(hvd_process_set_rank(id), rank.rank());
    EXPECT_EQ(hvd_process_set_size(id), rank.size());
    EXPECT_EQ(hvd_process_set_included(id), 1);
    EXPECT_EQ(hvd_process_set_count(), 1) << "only members know the set";
    int32_t ids[4] = {-1, -1, -1, -1};
    EXPECT_EQ(hvd_process_set_ids(ids, 4), 1);
    for (const size_t count : {1u, 500u, 50000u}) {
      expect_set_sum(id, "t", count);
      expect_set_sum(0, "t", count);
      expect_set_sum(id, "t", count);
    }
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK) << hvd_last_error();
    expect_global_sum("after");
  });
}

TEST(CapiMeetSets, DisjointSetsMeetAtOnceUnderOneKey) {
  run_processes(4, [](RankProcess& rank) {
    const Ranks mine = rank.rank() < 2 ? Ranks{0, 1} : Ranks{2, 3};

    const int32_t id = meet("halves", mine);

    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    for (int i = 0; i < 20; ++i) expect_set_sum(id, "t" + std::to_string(i % 3), 3000);
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
  });
}

TEST(CapiMeetSets, OverlappingSetsOpenInAnyOrder) {
  run_processes(3, [](RankProcess& rank) {
    const std::vector<Ranks> sets = {{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
    // Every rank comes to its meetings from threads, in an order of its own.
    std::vector<int32_t> ids(sets.size(), -1);
    std::vector<std::thread> threads;
    for (size_t n = 0; n < sets.size(); ++n) {
      const size_t i = (n + static_cast<size_t>(rank.rank())) % sets.size();
      if (std::count(sets[i].begin(), sets[i].end(), rank.rank()) == 0) continue;
      threads.emplace_back([&, i] { ids[i] = meet("set " + std::to_string(i), sets[i]); });
    }
    for (std::thread& thread : threads) thread.join();

    for (int round = 0; round < 10; ++round) {
      for (size_t i = 0; i < sets.size(); ++i) {
        if (std::count(sets[i].begin(), sets[i].end(), rank.rank()) == 0) continue;
        ASSERT_GE(ids[i], kFirstMetId) << "set " << i;
        expect_set_sum(ids[i], "t", 2000);
      }
    }
    for (const int32_t id : ids) {
      if (id < 0) continue;
      EXPECT_EQ(hvd_process_set_leave(id), HVD_OK) << hvd_last_error();
    }
    expect_global_sum("after");
  });
}

TEST(CapiMeetSets, AThreadMayMeetWhileAnotherDrivesAnOperation) {
  run_processes(2, [](RankProcess& rank) {
    std::vector<float> values(10, 1.0f);
    const hvd_handle waiting = float_allreduce("late", values).submitted();
    std::thread waiter;
    if (rank.rank() == 0) {
      waiter = std::thread([&] { EXPECT_EQ(hvd_wait(waiting, HVD_FOREVER), HVD_OK); });
    }
    std::vector<float> other(10, 1.0f);
    hvd_handle held = 0;
    std::thread holder;
    if (rank.rank() == 0) {  // holds the role until rank 1 has come to the meeting and beyond
      held = float_allreduce("held", other).submitted();
      holder = std::thread([&] { EXPECT_EQ(hvd_wait(held, HVD_FOREVER), HVD_OK); });
    }

    const int32_t id = meet("k", {0, 1});

    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    expect_set_sum(id, "t");
    if (rank.rank() == 1) held = float_allreduce("held", other).submitted();
    if (rank.rank() == 0) {
      waiter.join();
      holder.join();
    }
    finish(waiting);
    finish(held);
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
  });
}

TEST_P(CapiMeet, SetsComeAndGoAndStartClean) {
  run_processes(GetParam(), [](RankProcess& rank) {
    Ranks all;
    for (int r = 0; r < rank.size(); ++r) all.push_back(r);
    for (int round = 0; round < 200; ++round) {
      rank.phase("round " + std::to_string(round));
      const int32_t id = meet("again", all, 20 * kSecond * kTimeFactor);
      ASSERT_GE(id, kFirstMetId) << hvd_last_error();
      // Not level when it ends: the next set in this memory must not see it.
      for (int i = 0; i <= round % 3; ++i) expect_set_sum(id, "t", round % 4 == 0 ? 20000 : 10);
      ASSERT_EQ(hvd_process_set_leave(id), HVD_OK) << hvd_last_error();
      EXPECT_EQ(hvd_process_set_size(id), HVD_PROCESS_SET_ERROR_UNKNOWN_SET);
    }
    expect_global_sum("after");
  });
}

TEST(CapiMeetSets, AMissingMemberIsNamedWhenTheTimeIsOver) {
  run_processes(3, [](RankProcess& rank) {
    if (rank.rank() != 2) {
      EXPECT_EQ(meet("trio", {0, 1, 2}, kSecond / 5), HVD_PROCESS_SET_ERROR_TIMED_OUT);
      EXPECT_THAT(hvd_last_error(), HasSubstr("'trio'"));
      EXPECT_THAT(hvd_last_error(), HasSubstr("timed out waiting for ranks"));
      EXPECT_THAT(hvd_last_error(), HasSubstr("2"));
    }
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);

    const int32_t id = meet("trio", {0, 1, 2});

    ASSERT_GE(id, kFirstMetId) << "a meeting that failed does not spoil the key: "
                               << hvd_last_error();
    expect_set_sum(id, "t");
  });
}

TEST(CapiMeetSets, ATimeoutOfZeroOnlyLooks) {
  run_processes(2, [](RankProcess& rank) {
    if (rank.rank() == 0) {
      EXPECT_EQ(meet("look", {0, 1}, 0), HVD_PROCESS_SET_ERROR_TIMED_OUT);
    }
    expect_global_sum("goes on");
  });
}

TEST(CapiMeetSets, MembersThatDisagreeOnTheRanksAllFail) {
  run_processes(3, [](RankProcess& rank) {
    const Ranks mine = rank.rank() == 0 ? Ranks{0, 1} : Ranks{0, 1, 2};
    if (rank.rank() == 2) {
      ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
      return;
    }

    EXPECT_EQ(meet("pair", mine, 20 * kSecond * kTimeFactor), HVD_PROCESS_SET_ERROR_ARGUMENT);

    EXPECT_THAT(hvd_last_error(), HasSubstr("[0, 1]"));
    EXPECT_THAT(hvd_last_error(), HasSubstr("[0, 1, 2]"));
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
    const int32_t id = meet("pair", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    expect_set_sum(id, "t");
  });
}

TEST(CapiMeetSets, BadArgumentsAreRefusedAtOnce) {
  EXPECT_EQ(meet("early", {0}), HVD_PROCESS_SET_ERROR_INIT);
  EXPECT_THAT(hvd_last_error(), HasSubstr("initialized"));
  run_processes(2, [](RankProcess& rank) {
    const int32_t other = 1 - rank.rank();
    EXPECT_EQ(meet("", {0, 1}), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(meet(std::string(5000, 'k'), {0, 1}), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(meet("k", {0, 1, 1}), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(meet("k", {0, 1, 2}), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(hvd_process_set_meet("k", nullptr, 2, 0), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(hvd_process_set_meet(nullptr, &other, 1, 0), HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(meet("k", {other}), HVD_PROCESS_SET_ERROR_FOREIGN_SET);
    EXPECT_THAT(hvd_last_error(), HasSubstr("not a member"));
    EXPECT_EQ(hvd_process_set_leave(0), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_process_set_leave(kFirstMetId), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_process_set_leave(-5), HVD_INVALID_ARGUMENT);
    EXPECT_EQ(hvd_process_set_leave(1 << 30), HVD_INVALID_ARGUMENT);
    const int32_t id = meet(std::string(4096, 'k'), {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
    EXPECT_EQ(hvd_process_set_leave(id), HVD_INVALID_ARGUMENT) << "left already";
    std::vector<float> values(4);
    hvd_handle handle = 0;
    EXPECT_EQ(float_allreduce("t", values).set(id).submit(&handle), HVD_INVALID_ARGUMENT);
    expect_global_sum("goes on");
  });
}

TEST(CapiMeetSets, ATableThatIsFullSaysSo) {
  run_processes(1, [](RankProcess&) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 2000; ++i) {
      const int32_t id = meet("k" + std::to_string(i), {0});
      if (id < 0) {
        EXPECT_EQ(id, HVD_PROCESS_SET_ERROR_FULL);
        EXPECT_THAT(hvd_last_error(), HasSubstr("room"));
        break;
      }
      ids.push_back(id);
    }
    ASSERT_GE(ids.size(), 16u);
    ASSERT_LT(ids.size(), 2000u);
    ASSERT_EQ(hvd_process_set_leave(ids[5]), HVD_OK);
    EXPECT_GE(meet("room again", {0}), kFirstMetId) << hvd_last_error();
  });
}

TEST(CapiMeetSets, AMemberThatDiesEndsTheMeeting) {
  ProcessOptions options;
  options.expected_signals[2] = SIGKILL;
  options.supervise = [](Supervisor& supervisor) {
    EXPECT_TRUE(supervisor.board().wait_at_least(0, 2, std::chrono::seconds(20)));
    supervisor.kill(2);
  };
  run_processes(
      3,
      [](RankProcess& rank) {
        if (rank.rank() == 2) {
          for (;;) pause();
        }
        rank.board().add(0, 1);

        EXPECT_EQ(meet("with a dead one", {0, 1, 2}), HVD_PROCESS_SET_ERROR_SHUTDOWN);

        EXPECT_THAT(hvd_last_error(), HasSubstr("rank 2"));
        EXPECT_EQ(hvd_shutdown(), HVD_OK);
      },
      options);
}

TEST(CapiMeetSets, AMemberThatShutsDownEndsTheMeeting) {
  run_processes(3, [](RankProcess& rank) {
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);
    if (rank.rank() == 2) return;  // the harness shuts it down

    EXPECT_EQ(meet("with one that left", {0, 1, 2}), HVD_PROCESS_SET_ERROR_SHUTDOWN);

    EXPECT_THAT(hvd_last_error(), HasSubstr("rank 2"));
    const int32_t id = meet("without it", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    expect_set_sum(id, "t");
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
  });
}

TEST(CapiMeetSets, LeavingAbortsWhatTheOthersWaitFor) {
  run_processes(2, [](RankProcess& rank) {
    const int32_t id = meet("k", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    expect_set_sum(id, "both", 30000);
    std::vector<float> values(10, 1.0f);
    if (rank.rank() == 0) {
      ASSERT_EQ(hvd_process_set_leave(id), HVD_OK);
    } else {
      EXPECT_EQ(float_allreduce("alone", values).set(id).run(), HVD_ABORTED);
      EXPECT_THAT(hvd_last_error(), HasSubstr("rank 0"));
      EXPECT_THAT(hvd_last_error(), HasSubstr("left"));
      EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
    }
    expect_global_sum("goes on");
  });
}

TEST(CapiMeetSets, LeavingAbortsWhatIsPendingAndFinishesWhatIsAgreed) {
  run_processes(2, [](RankProcess& rank) {
    const int32_t id = meet("k", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    std::vector<float> large(2'000'000, 1.0f);
    std::vector<float> values(10, 1.0f);
    const hvd_handle agreed = float_allreduce("agreed", large).set(id).submitted();
    hvd_handle pending = 0;
    if (rank.rank() == 0) pending = float_allreduce("pending", values).set(id).submitted();
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK);

    ASSERT_EQ(hvd_process_set_leave(id), HVD_OK) << hvd_last_error();

    EXPECT_EQ(hvd_wait(agreed, HVD_FOREVER), HVD_OK) << hvd_last_error();
    EXPECT_EQ(large, std::vector<float>(large.size(), 2.0f));
    if (rank.rank() == 0) {
      EXPECT_EQ(hvd_wait(pending, HVD_FOREVER), HVD_ABORTED);
    }
    expect_global_sum("goes on");
  });
}

// Everything that rank 1 of {0, 2, 3} does not take part in.
void expect_every_kind_among_members(int32_t id) {
  const auto part = static_cast<size_t>(hvd_process_set_rank(id));
  std::vector<Bytes> inputs;
  for (const int r : {0, 2, 3}) inputs.push_back(make_data({.rank = r, .count = 12}));
  Bytes mine = inputs[part];
  const auto kept = [&](hvd_kind kind) {
    Call call(kind, "kept" + std::to_string(kind), HVD_FLOAT32, {12});
    const hvd_handle handle = call.input(mine.data()).set(id).submitted();
    EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
    const Bytes bytes = output_bytes(handle);
    EXPECT_EQ(hvd_release(handle), HVD_OK);
    return bytes;
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(kept(HVD_ALLGATHER), reference_allgather(inputs));
    EXPECT_EQ(kept(HVD_REDUCESCATTER),
              reference_reducescatter(
                  {.reduce = {}, .rows = 12, .receiver = static_cast<int>(part)}, inputs));
    const std::vector<std::vector<int32_t>> even(3, {4, 4, 4});
    EXPECT_EQ(kept(HVD_ALLTOALL), reference_alltoall(inputs, even, 4, static_cast<int>(part)));
    std::vector<float> sum(12, 2.0f);
    EXPECT_EQ(float_allreduce("sum", sum).set(id).run(), HVD_OK) << hvd_last_error();
    EXPECT_EQ(sum, std::vector<float>(12, 6.0f));
    std::vector<float> same(12, 2.0f);
    EXPECT_EQ(float_allreduce("adasum", same).op(HVD_OP_ADASUM).set(id).run(), HVD_OK);
    EXPECT_FLOAT_EQ(same[0], 2.0f) << "equal vectors have themselves as their Adasum";
    EXPECT_EQ(hvd_barrier(id, HVD_FOREVER), HVD_OK) << hvd_last_error();
  }
  Bytes cast = mine;
  Call call(HVD_BROADCAST, "cast", HVD_FLOAT32, {12});
  EXPECT_EQ(call.in_place(cast.data()).set(id).root(2).run(), HVD_OK) << hvd_last_error();
  EXPECT_EQ(cast, inputs[1]);
}

TEST(CapiMeetSets, EveryKindRunsInThem) {
  run_processes(4, [](RankProcess& rank) {
    if (rank.rank() != 1) {
      const int32_t id = meet("without 1", {0, 2, 3});
      ASSERT_GE(id, kFirstMetId) << hvd_last_error();
      expect_every_kind_among_members(id);
      EXPECT_EQ(hvd_process_set_leave(id), HVD_OK);
    }
    ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();  // nobody leaves early
  });
}

TEST(CapiMeetSets, CallbacksCannotMeetOrLeave) {
  run_processes(2, [](RankProcess& rank) {
    const int32_t id = meet("k", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    struct Answers {
      int32_t id, meeting = 0;
      hvd_status leaving = HVD_OK;
    } answers{id};
    std::vector<float> values(10, 1.0f);
    const auto callback = [](void* context, hvd_handle, hvd_status, const char*) {
      auto& out = *static_cast<Answers*>(context);
      out.meeting = meet("inside", {0, 1});
      out.leaving = hvd_process_set_leave(out.id);
    };
    const hvd_handle handle =
        float_allreduce("t", values).set(id).on_complete(callback, &answers).submitted();
    EXPECT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();
    // The callback is over when this rank has done something after it.
    expect_set_sum(id, "after");
    EXPECT_EQ(answers.meeting, HVD_PROCESS_SET_ERROR_ARGUMENT);
    EXPECT_EQ(answers.leaving, HVD_PRECONDITION_ERROR);
    EXPECT_EQ(hvd_process_set_leave(id), HVD_OK) << "rank " << rank.rank();
  });
}

TEST(CapiMeetSets, PreparedSubmissionsEndWithTheirSet) {
  run_processes(2, [](RankProcess&) {
    const int32_t id = meet("k", {0, 1});
    ASSERT_GE(id, kFirstMetId) << hvd_last_error();
    std::vector<float> values(10, 1.0f);
    const Call call = float_allreduce("t", values).set(id);
    const hvd_request request = call.request();
    hvd_prepared* prepared = nullptr;
    ASSERT_EQ(hvd_prepare(&request, 1, &prepared), HVD_OK) << hvd_last_error();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_OK);
    EXPECT_EQ(values, std::vector<float>(10, 32.0f));

    ASSERT_EQ(hvd_process_set_leave(id), HVD_OK);

    EXPECT_EQ(hvd_prepared_run(prepared, HVD_FOREVER), HVD_INVALID_ARGUMENT);
    hvd_handle handle = 0;
    EXPECT_EQ(hvd_prepared_submit(prepared, &handle), HVD_INVALID_ARGUMENT);
    hvd_prepared_free(prepared);
  });
}

TEST(CapiMeetSets, AMeetingThatLastsIsReported) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "1"}};
  const auto outcomes = run_processes(
      2,
      [](RankProcess& rank) {
        if (rank.rank() == 1) {
          ASSERT_TRUE(rank.board().wait_at_least(0, 1, std::chrono::seconds(30)));
        } else {
          EXPECT_EQ(meet("lonely", {0, 1}, 4 * kSecond), HVD_PROCESS_SET_ERROR_TIMED_OUT);
          rank.board().set(0, 1);
        }
      },
      options);
  EXPECT_THAT(outcomes[0].stderr_text, HasSubstr("meet 'lonely'"));
  EXPECT_THAT(outcomes[1].stderr_text, Not(HasSubstr("meet 'lonely'")));
}

}  // namespace
}  // namespace hvd::testing
