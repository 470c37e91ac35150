// Ranks that submit the same operations in different orders, from one or several threads, must
// agree on one order and get the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

constexpr size_t kTensorCount = 200;

size_t count_of(size_t index) { return index % 23 == 0 ? 20000 : (index * 37) % 700; }

// 200 tensors; submission order and the waiting order differ per rank and round.
void run_shuffled(RankProcess& rank, int rounds, Placement placement) {
  std::vector<std::unique_ptr<TestBuffer>> buffers;
  std::vector<Bytes> mine;
  std::vector<Call> calls;
  for (size_t i = 0; i < kTensorCount; ++i) {
    mine.push_back(make_data({.rank = rank.rank(), .count = count_of(i), .salt = i}));
    buffers.push_back(std::make_unique<TestBuffer>(placement, mine.back().size()));
    calls.push_back(Call(HVD_ALLREDUCE, "layer" + std::to_string(i), HVD_FLOAT32,
                         {static_cast<int64_t>(count_of(i))})
                        .in_place(buffers.back()->data()));
  }
  std::vector<size_t> order(kTensorCount);
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<hvd_handle> handles(kTensorCount);
  for (int round = 0; round < rounds; ++round) {
    rank.phase("shuffled round " + std::to_string(round));
    std::mt19937 random(static_cast<unsigned>(100 * round + rank.rank()));
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      buffers[i]->fill(mine[i]);
      handles[i] = calls[i].submitted();
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) finish(handles[i]);
    for (size_t i = round % 10; i < kTensorCount; i += 10) {  // a tenth of them in each round
      const auto inputs = make_data_of_all(rank.size(), {.count = count_of(i), .salt = i});
      EXPECT_TRUE(same_bits(HVD_FLOAT32, reference_allreduce({}, inputs), buffers[i]->bytes()))
          << "tensor " << i << " round " << round;
    }
  }
  Bytes all;
  for (auto& buffer : buffers) {
    const Bytes bytes = buffer->bytes();
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  expect_same_on_all_ranks(rank, all);
}

class CapiOrder : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks()) GTEST_SKIP() << "too many ranks for this build";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiOrder, ::testing::Values(1, 2, 3, 4, 8));

TEST_P(CapiOrder, ShuffledSubmissionsGiveTheSameBitsEverywhere) {
  run_processes(GetParam(), [](RankProcess& rank) { run_shuffled(rank, 10, Placement::kPrivate); });
}

TEST_P(CapiOrder, ShuffledSubmissionsOfSharedBuffersToo) {
  run_processes(GetParam(), [](RankProcess& rank) { run_shuffled(rank, 4, Placement::kShared); });
}

TEST_P(CapiOrder, AFewCacheEntriesAreEnough) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_CACHE_CAPACITY", "16"}};
  run_processes(
      GetParam(), [](RankProcess& rank) { run_shuffled(rank, 3, Placement::kPrivate); }, options);
}

TEST_P(CapiOrder, WorksWithoutACache) {
  ProcessOptions options;
  options.environment = {{"HOROVOD_CACHE_CAPACITY", "0"}};
  run_processes(
      GetParam(), [](RankProcess& rank) { run_shuffled(rank, 2, Placement::kPrivate); }, options);
}

TEST_P(CapiOrder, EveryProgressPolicyFinishesShuffledWork) {
  for (const hvd_progress progress :
       {HVD_PROGRESS_AUTO, HVD_PROGRESS_WAITER, HVD_PROGRESS_BACKGROUND}) {
    ProcessOptions options;
    options.progress = progress;
    run_processes(
        GetParam(), [](RankProcess& rank) { run_shuffled(rank, 2, Placement::kPrivate); }, options);
  }
}

// Different kinds under way at once, in an order of each rank's own.
TEST_P(CapiOrder, MixedKindsMayOvertakeEachOther) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto n = static_cast<float>(rank.size());
    for (int round = 0; round < 20; ++round) {
      rank.phase("mixed round " + std::to_string(round));
      std::vector<float> sum(1000, 1.0f);
      std::vector<float> cast(3000, static_cast<float>(rank.rank()));
      const std::vector<float> part(static_cast<size_t>(rank.rank() + 1), 1.0f);
      const std::vector<float> rows(static_cast<size_t>(rank.size()) * 5, 1.0f);
      std::vector<Call> calls;
      calls.push_back(float_allreduce("sum", sum));
      calls.push_back(Call(HVD_BROADCAST, "cast", HVD_FLOAT32, {3000})
                          .in_place(cast.data())
                          .root(rank.size() - 1));
      calls.push_back(
          Call(HVD_ALLGATHER, "gather", HVD_FLOAT32, {rank.rank() + 1}).input(part.data()));
      calls.push_back(
          Call(HVD_ALLTOALL, "exchange", HVD_FLOAT32, {rank.size() * 5}).input(rows.data()));
      calls.push_back(
          Call(HVD_REDUCESCATTER, "scatter", HVD_FLOAT32, {rank.size() * 5}).input(rows.data()));
      calls.push_back(Call(HVD_BARRIER, "", HVD_FLOAT32, {}));
      std::vector<size_t> order(calls.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::shuffle(order.begin(), order.end(),
                   std::mt19937(static_cast<unsigned>(round * 31 + rank.rank())));
      std::vector<hvd_handle> handles(calls.size());

      for (const size_t i : order) handles[i] = calls[i].submitted();
      ASSERT_EQ(hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER), HVD_OK)
          << hvd_last_error();

      EXPECT_EQ(sum, std::vector<float>(1000, n));
      EXPECT_EQ(cast, std::vector<float>(3000, n - 1));
      EXPECT_EQ(output_bytes(handles[2]).size(), static_cast<size_t>(n * (n + 1) / 2) * 4);
      EXPECT_EQ(output_bytes(handles[3]).size(), rows.size() * 4);
      EXPECT_EQ(element_at(HVD_FLOAT32, output_bytes(handles[4]), 4), n);
      for (const hvd_handle handle : handles) EXPECT_EQ(hvd_release(handle), HVD_OK);
    }
  });
}

// Each thread works through its own names; the threads of a rank run as the kernel likes.
void run_thread(int thread, int size) {
  for (int step = 0; step < 150; ++step) {
    const std::string name = "thread" + std::to_string(thread) + "/" + std::to_string(step % 7);
    std::vector<float> values(step % 5 == 0 ? 30000 : 200, static_cast<float>(thread + 1));
    const std::vector<float> expected(values.size(), static_cast<float>((thread + 1) * size));
    const Call call = float_allreduce(name, values);
    if (step % 3 == 0) {
      finish(call.submitted());
    } else {
      EXPECT_EQ(call.run(), HVD_OK) << hvd_last_error();
    }
    EXPECT_EQ(values, expected) << name << " step " << step;
  }
}

TEST_P(CapiOrder, TwoThreadsPerRankWorkAtTheSameTime) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const int size = rank.size();
    std::thread other([size] { run_thread(1, size); });
    run_thread(0, size);
    other.join();
  });
}

TEST_P(CapiOrder, UnnamedOperationsAreMatchedByOrder) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto n = static_cast<float>(rank.size());
    std::vector<std::vector<float>> tensors;
    for (int i = 0; i < 20; ++i) tensors.emplace_back(10 + i, static_cast<float>(i));
    std::vector<hvd_handle> handles;

    for (auto& tensor : tensors) handles.push_back(float_allreduce("", tensor).submitted());
    ASSERT_EQ(hvd_wait_many(handles.data(), handles.size(), HVD_FOREVER), HVD_OK)
        << hvd_last_error();

    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(tensors[static_cast<size_t>(i)],
                std::vector<float>(static_cast<size_t>(10 + i), n * static_cast<float>(i)));
      EXPECT_EQ(hvd_release(handles[static_cast<size_t>(i)]), HVD_OK);
    }
  });
}

}  // namespace
}  // namespace hvd::testing
