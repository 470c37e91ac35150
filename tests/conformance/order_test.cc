// Ranks that submit in different orders, faster than their peers, from several threads, or beyond
// the cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

struct Tensor {
  EngineCall call;
  std::vector<float> data;
};

size_t count_of(int index) {
  constexpr size_t kSizes[] = {1, 20, 300, 2500, 30000, 7};
  return kSizes[static_cast<size_t>(index) % std::size(kSizes)];
}

float value_of(int rank, int index, int step) {
  return static_cast<float>(rank + 1) * 0.25f + static_cast<float>(index % 17) +
         static_cast<float>(step);
}

float sum_of(int size, int index, int step) {
  float sum = value_of(0, index, step);
  for (int rank = 1; rank < size; ++rank) sum += value_of(rank, index, step);
  return sum;
}

std::vector<Tensor> make_tensors(int count, const std::string& prefix) {
  std::vector<Tensor> tensors(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    Tensor& t = tensors[static_cast<size_t>(i)];
    t.data.resize(count_of(i));
    t.call = EngineCall{.name = prefix + std::to_string(i),
                        .shape = {static_cast<int64_t>(t.data.size())}};
  }
  return tensors;
}

// One step: fill, submit in this order, wait (in yet another order), check.
void step(TestRank& r, std::vector<Tensor>& tensors, std::mt19937& random, int number) {
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::pair<size_t, uint64_t>> handles;
  for (const size_t i : order) {
    std::fill(tensors[i].data.begin(), tensors[i].data.end(),
              value_of(r.rank(), static_cast<int>(i), number));
    auto handle = r.submit(tensors[i].call, tensors[i].data.data(), tensors[i].data.data());
    ASSERT_TRUE(handle) << handle.status().message();
    handles.emplace_back(i, *handle);
    if (random() % 7 == 0) (void)r.engine().poll(handles[random() % handles.size()].second).is_ok();
  }
  std::shuffle(handles.begin(), handles.end(), random);
  for (const auto& [i, handle] : handles) {
    const Status status =
        r.engine().wait(handle, Deadline::after(std::chrono::seconds(60 * kTimeFactor)));
    ASSERT_TRUE(status) << "rank " << r.rank() << " step " << number << " tensor " << i << ": "
                        << status.message();
    ASSERT_TRUE(r.engine().release(handle));
    const float expected = sum_of(r.size(), static_cast<int>(i), number);
    for (const float value : tensors[i].data)
      ASSERT_EQ(value, expected) << "tensor " << i << " step " << number;
  }
}

class Order : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks())
      GTEST_SKIP() << "instrumented builds run up to " << max_test_ranks() << " ranks";
  }
};

TEST_P(Order, RandomOrdersOnEveryRankGiveTheSameResults) {
  run_ranks(GetParam(), [](TestRank& r) {
    std::mt19937 random(static_cast<unsigned>(r.rank()) * 7919 + 1);
    auto tensors = make_tensors(60, "t");
    for (int number = 0; number < 12; ++number)
      ASSERT_NO_FATAL_FAILURE(step(r, tensors, random, number));
    // A sleep that ends by its time limit just when a peer publishes looks like a lost wake-up: on
    // a busy machine that happens now and then, a protocol that loses them does it in every step.
    EXPECT_LE(r.engine().statistics().rescued_wakes.get(), 6u * kTimeFactor)
        << "wake-ups were lost";
  });
}

TEST_P(Order, TwoThreadsPerRankSubmitAndWait) {
  run_ranks(GetParam(), [](TestRank& r) {
    const auto work = [&](int thread) {
      std::mt19937 random(static_cast<unsigned>(r.rank() * 2 + thread) * 104729 + 3);
      auto tensors = make_tensors(20, "thread" + std::to_string(thread) + ".");
      for (int number = 0; number < 10; ++number)
        ASSERT_NO_FATAL_FAILURE(step(r, tensors, random, number));
    };
    std::thread other([&] { work(1); });
    work(0);
    other.join();
  });
}

TEST_P(Order, MoreTensorsThanTheCacheHoldsAreEvictedAndComeBack) {
  ThreadOptions options;
  options.settings.cache_capacity = 8;
  run_ranks(
      GetParam(),
      [](TestRank& r) {
        std::mt19937 random(static_cast<unsigned>(r.rank()) * 31 + 5);
        auto tensors = make_tensors(30, "e");
        for (int number = 0; number < 5; ++number)
          ASSERT_NO_FATAL_FAILURE(step(r, tensors, random, number));
        EXPECT_LE(r.engine().order_counts().entries, 8u);
        EXPECT_GT(r.engine().order_counts().evictions, 0u);
      },
      options);
}

TEST_P(Order, WithoutACacheEverythingIsNegotiatedEachTime) {
  ThreadOptions options;
  options.settings.cache_capacity = 0;
  run_ranks(
      GetParam(),
      [](TestRank& r) {
        std::mt19937 random(static_cast<unsigned>(r.rank()) * 77 + 2);
        auto tensors = make_tensors(12, "n");
        for (int number = 0; number < 5; ++number)
          ASSERT_NO_FATAL_FAILURE(step(r, tensors, random, number));
        EXPECT_EQ(r.engine().statistics().cache_hits.get(), 0u);
      },
      options);
}

TEST_P(Order, ARankFarAheadQueuesLocally) {
  // More submissions than a stream has records, before the peers submit anything.
  run_ranks(GetParam(), [](TestRank& r) {
    constexpr int kCount = 1500;
    for (int round = 0; round < 2; ++round) {
      std::vector<float> values(kCount);
      std::vector<uint64_t> handles;
      if (r.rank() != 0) {
        ASSERT_TRUE(r.engine().barrier(0, Deadline::never()));
      }
      for (int i = 0; i < kCount; ++i) {
        values[static_cast<size_t>(i)] = value_of(r.rank(), i, round);
        EngineCall call{.name = "ahead" + std::to_string(i), .shape = {1}};
        auto handle =
            r.submit(call, &values[static_cast<size_t>(i)], &values[static_cast<size_t>(i)]);
        ASSERT_TRUE(handle) << handle.status().message();
        handles.push_back(*handle);
      }
      if (r.rank() == 0) {
        ASSERT_TRUE(r.engine().barrier(0, Deadline::never()));
      }
      ASSERT_TRUE(r.engine().wait_many(handles.data(), handles.size(), Deadline::never()));
      for (int i = 0; i < kCount; ++i) {
        ASSERT_EQ(values[static_cast<size_t>(i)], sum_of(r.size(), i, round)) << i;
        ASSERT_TRUE(r.engine().release(handles[static_cast<size_t>(i)]));
      }
    }
  });
}

TEST_P(Order, ATensorThatWaitsLongDoesNotBlockTheOthers) {
  run_ranks(GetParam(), [](TestRank& r) {
    std::vector<float> late(500, value_of(r.rank(), 3, 0));
    EngineCall late_call{.name = "late", .shape = {500}};
    for (int round = 0; round < 3; ++round) {
      std::fill(late.begin(), late.end(), value_of(r.rank(), 3, round));
      uint64_t handle = 0;
      if (r.rank() == 0) {
        auto submitted = r.submit(late_call, late.data(), late.data());
        ASSERT_TRUE(submitted);
        handle = *submitted;
      }
      for (int i = 0; i < 1300; ++i) {  // several times around the ring
        float value = value_of(r.rank(), i, round);
        ASSERT_TRUE(r.run(EngineCall{.name = "quick" + std::to_string(i % 5), .shape = {1}}, &value,
                          &value));
        ASSERT_EQ(value, sum_of(r.size(), i, round));
      }
      if (r.rank() != 0) {
        auto submitted = r.submit(late_call, late.data(), late.data());
        ASSERT_TRUE(submitted);
        handle = *submitted;
      }
      ASSERT_TRUE(r.engine().wait(handle, Deadline::never()));
      ASSERT_TRUE(r.engine().release(handle));
      for (const float value : late) ASSERT_EQ(value, sum_of(r.size(), 3, round));
    }
  });
}

TEST_P(Order, ANameMayChangeItsShapeBetweenCalls) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int i = 0; i < 40; ++i) {
      const auto count = static_cast<int64_t>(i % 4 == 3 ? 5000 : 1 + i % 4);
      for (int repeat = 0; repeat < 2; ++repeat) {
        std::vector<float> data(static_cast<size_t>(count), value_of(r.rank(), i, repeat));
        ASSERT_TRUE(
            r.run(EngineCall{.name = "changes", .shape = {count}}, data.data(), data.data()));
        for (const float value : data)
          ASSERT_EQ(value, sum_of(r.size(), i, repeat)) << "call " << i;
      }
    }
  });
}

TEST_P(Order, UnnamedOperationsMatchByOrderAndUseTheCache) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int i = 0; i < 50; ++i) {
      float value = value_of(r.rank(), i, 0);
      ASSERT_TRUE(r.run(EngineCall{.shape = {1}}, &value, &value));
      ASSERT_EQ(value, sum_of(r.size(), i, 0));
      std::vector<float> pair(2, value_of(r.rank(), i, 1));
      ASSERT_TRUE(r.run(EngineCall{.shape = {2}}, pair.data(), pair.data()));
      ASSERT_EQ(pair[1], sum_of(r.size(), i, 1));
    }
    EXPECT_GE(r.engine().statistics().cache_hits.get(), 98u);
  });
}

TEST_P(Order, UnnamedOperationsWithDifferentShapesAreAnErrorOnAllRanks) {
  if (GetParam() == 1) return;
  run_ranks(GetParam(), [](TestRank& r) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<float> data(8, 1.0f);
      const int64_t count = r.rank() == 1 ? 4 : 3;
      const Status status = r.run(EngineCall{.shape = {count}}, data.data(), data.data());
      EXPECT_EQ(status.code(), StatusCode::kPreconditionError) << status.message();
      float value = 1.0f;
      ASSERT_TRUE(r.run(EngineCall{.name = "fine", .shape = {1}}, &value, &value));
      EXPECT_EQ(value, static_cast<float>(r.size()));
    }
  });
}

TEST_P(Order, JoinedRanksContributeZeros) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int round = 0; round < 3; ++round) {
      // Rank r does 2 + 3 r operations, small and large in turn, then joins.
      const int steps = 2 + 3 * r.rank();
      for (int i = 0; i < steps; ++i) {
        std::vector<float> data(i % 2 == 0 ? 4 : 20000, 1.0f);
        EngineCall call{.name = "j" + std::to_string(i),
                        .shape = {static_cast<int64_t>(data.size())}};
        ASSERT_TRUE(r.run(call, data.data(), data.data()));
        int members = 0;
        for (int rank = 0; rank < r.size(); ++rank) members += i < 2 + 3 * rank ? 1 : 0;
        ASSERT_EQ(data[3], static_cast<float>(members)) << "round " << round << " step " << i;
        ASSERT_EQ(data.back(), static_cast<float>(members));
      }
      auto last = r.engine().join(Deadline::never());
      ASSERT_TRUE(last) << last.status().message();
      EXPECT_EQ(*last, r.size() - 1);
    }
    float value = 1.0f;
    ASSERT_TRUE(r.run(EngineCall{.name = "after", .shape = {1}}, &value, &value));
    EXPECT_EQ(value, static_cast<float>(r.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSize, Order, ::testing::Values(1, 2, 3, 4, 8));

}  // namespace
}  // namespace hvd::testing
