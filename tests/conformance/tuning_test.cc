// Tunings that change all the time must not show in results: not in their values (the whole suite
// runs so with HVD_TEST_TUNING), and not in their bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

tune::Tuning random_tuning(std::minstd_rand& random) {
  tune::Tuning tuning;
  for (size_t k = 0; k < tune::kKnobCount; ++k) {
    const tune::KnobInfo& info = tune::info_of(static_cast<tune::Knob>(k));
    if (!info.may_change_bits)
      tuning.levels[k] = static_cast<uint8_t>(random() % info.level_count());
  }
  return tuning;
}

class Tunings : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks())
      GTEST_SKIP() << "instrumented builds run up to " << max_test_ranks() << " ranks";
  }
};

TEST_P(Tunings, LeaveTheBitsOfReductionsAlone) {
  struct Kind {
    ReduceOp op;
    DType dtype;
    int32_t wire;
  };
  const Kind kinds[] = {{ReduceOp::kSum, DType::kFloat32, -1},
                        {ReduceOp::kAverage, DType::kFloat64, -1},
                        {ReduceOp::kSum, DType::kFloat16, -1},
                        {ReduceOp::kSum, DType::kFloat32, static_cast<int32_t>(DType::kBfloat16)},
                        {ReduceOp::kAdasum, DType::kFloat32, -1}};
  run_ranks(GetParam(), [&](TestRank& r) {
    std::minstd_rand random(7);
    for (size_t k = 0; k < std::size(kinds); ++k) {
      for (const size_t count : {size_t{20}, size_t{700}, size_t{5000}, size_t{80001}}) {
        EngineCall call{.op = kinds[k].op,
                        .dtype = kinds[k].dtype,
                        .name = "bits." + std::to_string(k) + "." + std::to_string(count),
                        .wire = kinds[k].wire,
                        .shape = {static_cast<int64_t>(count)}};
        Bytes expected;
        for (int repeat = 0; repeat < 10; ++repeat) {
          // The first is negotiated, the second as it is by itself.
          if (repeat >= 2) r.engine().propose_tuning(random_tuning(random));
          Bytes data = make_data({r.rank(), static_cast<hvd_dtype>(call.dtype), count, 3});
          const Status status = r.run(call, data.data(), data.data());
          ASSERT_TRUE(status) << status.message();
          if (repeat == 1) expected = data;
          if (repeat >= 2) {
            ASSERT_EQ(data, expected) << call.name << ", rank " << r.rank();
          }
        }
        if (r.rank() == 0) r.engine().propose_tuning({});
      }
    }
  });
}

// Twenty operations in flight, in another order on every rank, with switches among them.
TEST_P(Tunings, SwitchWhileOperationsAreInFlight) {
  constexpr int kOperations = 20;
  run_ranks(GetParam(), [](TestRank& r) {
    std::minstd_rand tunings(3), order(static_cast<uint32_t>(r.rank()) + 1);
    for (int round = 0; round < 15; ++round) {
      std::vector<int> numbers(kOperations);
      for (int i = 0; i < kOperations; ++i) numbers[static_cast<size_t>(i)] = i;
      std::shuffle(numbers.begin(), numbers.end(), order);
      std::map<int, std::vector<int32_t>> values;
      std::vector<std::pair<int, uint64_t>> handles;
      for (const int number : numbers) {
        r.engine().propose_tuning(random_tuning(tunings));
        auto& data = values[number];
        data.assign(static_cast<size_t>(number % 4 == 0 ? 60000 : 30 << number % 8), number + 1);
        EngineCall call{.dtype = DType::kInt32,
                        .name = "flight." + std::to_string(number),
                        .shape = {static_cast<int64_t>(data.size())}};
        const auto handle = r.submit(call, data.data(), data.data());
        ASSERT_TRUE(handle) << handle.status().message();
        handles.emplace_back(number, *handle);
      }
      for (const auto& [number, handle] : handles) {
        ASSERT_TRUE(r.engine().wait(handle, Deadline::never()));
        ASSERT_TRUE(r.engine().release(handle));
        const int32_t sum = (number + 1) * r.size();
        ASSERT_EQ(std::count(values[number].begin(), values[number].end(), sum),
                  std::ssize(values[number]));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSize, Tunings, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace hvd::testing
