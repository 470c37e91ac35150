// Long runs for `./dev test full`.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

TEST(ConformanceSoak, ManyRandomStepsGiveRightResultsAndLoseNoWakeUps) {
  for (const int size : {2, 4}) {
    run_ranks(size, [](TestRank& r) {
      std::mt19937 mine(static_cast<unsigned>(r.rank()) + 17), shared(5);
      for (int step = 0; step < 400; ++step) {
        std::vector<std::vector<float>> data;
        std::vector<size_t> order;
        for (size_t i = 0; i < 40; ++i) {
          data.emplace_back(size_t{1} << shared() % 17, static_cast<float>(r.rank() + 1));
          order.push_back(i);
        }
        std::shuffle(order.begin(), order.end(), mine);
        std::vector<uint64_t> handles;
        for (const size_t i : order) {
          EngineCall call{.name = "soak" + std::to_string(i),
                          .shape = {static_cast<int64_t>(data[i].size())}};
          auto handle = r.submit(call, data[i].data(), data[i].data());
          ASSERT_TRUE(handle) << handle.status().message();
          handles.push_back(*handle);
        }
        ASSERT_TRUE(r.engine().wait_many(handles.data(), handles.size(), Deadline::never()));
        for (const uint64_t handle : handles) ASSERT_TRUE(r.engine().release(handle));
        const float expected = static_cast<float>(r.size() * (r.size() + 1)) / 2;
        for (const auto& tensor : data) {
          ASSERT_EQ(tensor.front(), expected);
          ASSERT_EQ(tensor.back(), expected);
        }
      }
      EXPECT_LE(r.engine().statistics().rescued_wakes.get(), 20u);
    });
  }
}

TEST(ConformanceSoak, TensorsBeyondTwoToThe31ElementsAreReduced) {
  constexpr size_t kCount = (size_t{1} << 31) + 12345;
  run_ranks(2, [](TestRank& r) {
    std::vector<uint8_t> data(kCount, static_cast<uint8_t>(r.rank() + 1));
    data[kCount - 1] = 7;
    EngineCall call{
        .dtype = DType::kUint8, .name = "huge", .shape = {static_cast<int64_t>(kCount)}};
    ASSERT_TRUE(r.run(call, data.data(), data.data()));
    for (const size_t i : {size_t{0}, kCount / 2, (size_t{1} << 31) + 1, kCount - 2})
      EXPECT_EQ(data[i], 3) << i;
    EXPECT_EQ(data[kCount - 1], 14);
  });
}

}  // namespace
}  // namespace hvd::testing
