// Adasum over the C ABI for any number of ranks, against the reference's fold and distance
// doubling.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

class CapiAdasum : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks()) GTEST_SKIP() << "too many ranks for this build";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiAdasum, ::testing::Values(1, 2, 3, 4, 5, 8));

double tolerance_of(hvd_dtype dtype) {
  switch (dtype) {
    case HVD_FLOAT16:
      return 2e-3;
    case HVD_BFLOAT16:
      return 1.6e-2;
    case HVD_FLOAT32:
      return 1e-5;
    default:
      return 1e-12;
  }
}

TEST_P(CapiAdasum, AgreesWithTheReferenceForEveryFloatType) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32, HVD_FLOAT64}) {
      for (const size_t count : {0u, 1u, 7u, 1000u, 5000u, 100000u}) {
        for (const Placement placement : {Placement::kPrivate, Placement::kShared}) {
          rank.phase(std::string("adasum ") + dtype_text(dtype) + " " + std::to_string(count));
          const auto inputs = make_data_of_all(rank.size(), {.dtype = dtype, .count = count});
          const Bytes expected = reference_allreduce({.dtype = dtype, .op = HVD_OP_ADASUM}, inputs);
          TestBuffer buffer(placement, expected.size());
          buffer.fill(inputs[static_cast<size_t>(rank.rank())]);

          ASSERT_EQ(Call(HVD_ALLREDUCE, "adasum", dtype, {static_cast<int64_t>(count)})
                        .in_place(buffer.data())
                        .op(HVD_OP_ADASUM)
                        .run(),
                    HVD_OK)
              << hvd_last_error();

          EXPECT_TRUE(close_to(dtype, expected, buffer.bytes(), tolerance_of(dtype)))
              << dtype_text(dtype) << " count " << count;
          expect_same_on_all_ranks(rank, buffer.bytes());
        }
      }
    }
  });
}

TEST_P(CapiAdasum, IdenticalGradientsAreAveragedAndOrthogonalOnesAdded) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<double> same(64, 3.0);
    std::vector<double> orthogonal(64, 0.0);
    orthogonal[static_cast<size_t>(rank.rank())] = 1.0 + rank.rank();

    for (auto* values : {&same, &orthogonal}) {
      ASSERT_EQ(Call(HVD_ALLREDUCE, "", HVD_FLOAT64, {64})
                    .in_place(values->data())
                    .op(HVD_OP_ADASUM)
                    .run(),
                HVD_OK)
          << hvd_last_error();
    }

    for (const double value : same) EXPECT_NEAR(value, 3.0, 1e-12);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_NEAR(orthogonal[i], i < static_cast<size_t>(rank.size()) ? 1.0 + double(i) : 0.0,
                  1e-12);
    }
  });
}

TEST_P(CapiAdasum, ScalesAroundTheWholeOperation) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const ReduceSpec spec = {.op = HVD_OP_ADASUM, .prescale = 0.5, .postscale = 3.0};
    const auto inputs = make_data_of_all(rank.size(), {.count = 600});
    Bytes values = inputs[static_cast<size_t>(rank.rank())];

    ASSERT_EQ(allreduce_call("scaled", HVD_FLOAT32, values)
                  .op(HVD_OP_ADASUM)
                  .scale(spec.prescale, spec.postscale)
                  .run(),
              HVD_OK)
        << hvd_last_error();

    EXPECT_TRUE(close_to(HVD_FLOAT32, reference_allreduce(spec, inputs), values, 1e-5));
  });
}

TEST_P(CapiAdasum, TensorsOfAGroupAreCombinedOneByOne) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto me = static_cast<size_t>(rank.rank());
    const auto first = make_data_of_all(rank.size(), {.count = 40, .salt = 1});
    const auto second = make_data_of_all(rank.size(), {.count = 9000, .salt = 2});
    Bytes a = first[me];
    Bytes b = second[me];
    const Call call_a = allreduce_call("a", HVD_FLOAT32, a).op(HVD_OP_ADASUM);
    const Call call_b = allreduce_call("b", HVD_FLOAT32, b).op(HVD_OP_ADASUM);
    const hvd_request group[] = {call_a.request(), call_b.request()};

    ASSERT_EQ(hvd_run_group(group, 2, HVD_FOREVER), HVD_OK) << hvd_last_error();

    const ReduceSpec spec = {.op = HVD_OP_ADASUM};
    EXPECT_TRUE(close_to(HVD_FLOAT32, reference_allreduce(spec, first), a, 1e-5));
    EXPECT_TRUE(close_to(HVD_FLOAT32, reference_allreduce(spec, second), b, 1e-5));
  });
}

TEST(CapiAdasumErrors, IntegersAreRefused) {
  run_processes(1, [](RankProcess&) {
    int32_t value = 1;
    EXPECT_EQ(Call(HVD_ALLREDUCE, "int", HVD_INT32, {1}).in_place(&value).op(HVD_OP_ADASUM).run(),
              HVD_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace hvd::testing
