// Sets that members open and close among themselves, from several threads of every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

using Ranks = std::vector<int32_t>;

Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

void expect_sum(TestRank& rank, int32_t set, const std::string& name, int64_t count,
                size_t members) {
  std::vector<float> values(static_cast<size_t>(count), 1.0f);
  const Status status = rank.run(EngineCall{.name = name, .set = set, .shape = {count}},
                                 values.data(), values.data());
  ASSERT_TRUE(status) << status.message();
  EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(members)));
}

// Opens, uses and closes one set again and again.
void come_and_go(TestRank& rank, const std::string& key, const Ranks& ranks, int rounds) {
  if (std::count(ranks.begin(), ranks.end(), rank.rank()) == 0) return;
  for (int round = 0; round < rounds; ++round) {
    auto id = rank.engine().meet_process_set(key, ranks, soon());
    ASSERT_TRUE(id) << key << ": " << id.status().message();
    expect_sum(rank, *id, "t", round % 3 == 0 ? 20000 : 5, ranks.size());
    expect_sum(rank, *id, "t", 5, ranks.size());
    const Status left = rank.engine().leave_process_set(*id);
    ASSERT_TRUE(left) << key << ": " << left.message();
  }
}

TEST(Meet, ThreadsOfAllRanksOpenAndCloseSetsWhileOthersWork) {
  run_ranks(4, [](TestRank& rank) {
    const std::vector<Ranks> sets = {{0, 1}, {2, 3}, {1, 2}, {0, 3}, {0, 1, 2, 3}};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sets.size(); ++i) {
      threads.emplace_back([&, i] { come_and_go(rank, "set " + std::to_string(i), sets[i], 20); });
    }
    for (int i = 0; i < 50; ++i) expect_sum(rank, 0, "global", 100, 4);
    for (std::thread& thread : threads) thread.join();
    expect_sum(rank, 0, "after", 100, 4);
  });
}

TEST(Meet, AMeetingThatIsGivenUpLeavesNothingBehind) {
  std::atomic<int> given_up{0};
  run_ranks(2, [&](TestRank& rank) {
    for (int round = 0; round < 50; ++round) {
      // Ranks come at random moments and give up quickly; those that met have the same set.
      const auto span = std::chrono::microseconds(1 + (round * 37 + rank.rank() * 501) % 1000);
      auto id = rank.engine().meet_process_set("random", {0, 1}, Deadline::after(span));
      if (!id) {
        EXPECT_EQ(id.status().code(), StatusCode::kTimedOut) << id.status().message();
        ++given_up;
        continue;
      }
      const Status left = rank.engine().leave_process_set(*id);
      EXPECT_TRUE(left) << left.message();
    }
    // However the rounds went, both ranks are free to meet now.
    expect_sum(rank, 0, "all rounds are over", 10, 2);
    auto id = rank.engine().meet_process_set("calm", {0, 1}, soon());
    ASSERT_TRUE(id) << id.status().message();
    expect_sum(rank, *id, "t", 10, 2);
  });
  RecordProperty("given_up", given_up.load());
}

// Rank 1 leaves because rank 2 died, and rank 0 comes before it has heard of either: the death is
// the reason, not the leaving.
TEST(Meet, WhoComesAfterAFailureIsToldOfThatAndNotOfThoseItMadeLeave) {
  if (simulated_hosts(3) > 1) GTEST_SKIP() << "the failure is written into one host's segment";
  for (int round = 0; round < 20; ++round) {
    std::vector<shm::Job*> jobs;
    ThreadOptions options;
    options.with_jobs = [&](const std::vector<shm::Job*>& all) { jobs = all; };
    std::atomic<int> started{0};
    std::atomic<bool> has_left{false};
    run_ranks(
        3,
        [&](TestRank& rank) {
          ++started;
          if (rank.rank() == 1) {
            while (started.load() < 3) std::this_thread::yield();  // nobody fails in init
            jobs[1]->report_failure(Status(StatusCode::kPeerLost, "rank 2 died"), 2);
            rank.engine().shutdown(soon());
            has_left.store(true);
          }
          while (!has_left.load()) std::this_thread::yield();
          if (rank.rank() != 0) return;

          auto id = rank.engine().meet_process_set("late", {0, 1, 2}, soon());

          ASSERT_FALSE(id);
          EXPECT_EQ(id.status().code(), StatusCode::kPeerLost) << id.status().message();
          EXPECT_EQ(id.status().message(), "rank 2 died");
        },
        options);
  }
}

TEST(Meet, AnOperationOfThatSetMayHaveACallbackOnAnyThread) {
  run_ranks(3, [](TestRank& rank) {
    auto id = rank.engine().meet_process_set("callbacks", {0, 1, 2}, soon());
    ASSERT_TRUE(id) << id.status().message();
    std::vector<float> values(30000, 1.0f);
    const int64_t shape = 30000;
    engine::TensorArg tensor;
    tensor.name = "t";
    tensor.shape = {&shape, 1};
    tensor.input = values.data();
    tensor.output = values.data();
    std::atomic<int> called{0};
    engine::Submission s;
    s.tensors = {&tensor, 1};
    s.on_complete = [](void* context, uint64_t, int, const char*) {
      static_cast<std::atomic<int>*>(context)->store(1, std::memory_order_release);
    };
    s.callback_context = &called;
    auto handle = rank.engine().submit(*id, s);
    ASSERT_TRUE(handle) << handle.status().message();
    ASSERT_TRUE(rank.engine().wait(*handle, soon()));
    while (called.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    EXPECT_EQ(values[0], 3.0f);
    ASSERT_TRUE(rank.engine().release(*handle));
    EXPECT_TRUE(rank.engine().leave_process_set(*id));
  });
}

}  // namespace
}  // namespace hvd::testing
