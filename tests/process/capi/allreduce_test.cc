// Allreduce over the C ABI with real processes: every dtype and operation, sizes from nothing to
// streams, private and shared buffers, scaling and wire types, against the plain reference.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

constexpr hvd_reduce_op kPlainOps[] = {HVD_OP_AVERAGE, HVD_OP_SUM, HVD_OP_MIN, HVD_OP_MAX,
                                       HVD_OP_PRODUCT};

enum class Buffers { kPrivate, kShared, kMixed, kMixedAcrossRanks };

struct ReduceCase {
  ReduceSpec spec = {};
  size_t count = 17;
  Buffers buffers = Buffers::kPrivate;
  bool in_place = true;
  size_t offset_bytes = 0;
};

std::string text_of(const ReduceCase& c) {
  return std::string(dtype_text(c.spec.dtype)) + " op " + std::to_string(c.spec.op) + " count " +
         std::to_string(c.count) + " buffers " + std::to_string(static_cast<int>(c.buffers)) +
         (c.in_place ? " in place" : " out of place") + " scale " +
         std::to_string(c.spec.prescale) + "/" + std::to_string(c.spec.postscale);
}

Placement input_placement(Buffers buffers, int rank) {
  if (buffers == Buffers::kMixedAcrossRanks) {
    return rank % 2 == 0 ? Placement::kShared : Placement::kPrivate;
  }
  return buffers == Buffers::kPrivate ? Placement::kPrivate : Placement::kShared;
}

// Runs the case on this rank and returns what came out; every rank calls it in the same order.
Bytes run_case(RankProcess& rank, const ReduceCase& c, const Bytes& mine, int wire = -1) {
  static int counter = 0;
  const Placement in = input_placement(c.buffers, rank.rank());
  const Placement out = c.buffers == Buffers::kMixed ? Placement::kPrivate : in;
  TestBuffer input(in, mine.size(), c.offset_bytes);
  input.fill(mine);
  std::unique_ptr<TestBuffer> output;
  if (!c.in_place) output = std::make_unique<TestBuffer>(out, mine.size(), c.offset_bytes);
  TestBuffer& result = c.in_place ? input : *output;
  const auto call = Call(HVD_ALLREDUCE, "t" + std::to_string(++counter), c.spec.dtype,
                         {static_cast<int64_t>(c.count)})
                        .input(input.data())
                        .output(result.data())
                        .op(c.spec.op)
                        .scale(c.spec.prescale, c.spec.postscale)
                        .wire(wire);
  rank.phase(text_of(c));
  EXPECT_EQ(call.run(), HVD_OK) << text_of(c) << ": " << hvd_last_error();
  if (!c.in_place) {
    EXPECT_EQ(input.bytes(), mine) << "the input changed: " << text_of(c);
  }
  return result.bytes();
}

void expect_case(RankProcess& rank, const ReduceCase& c, double tolerance = 0.0) {
  const auto inputs = make_data_of_all(
      rank.size(), {.dtype = c.spec.dtype, .count = c.count, .salt = c.count + c.spec.op});
  const Bytes expected = reference_allreduce(c.spec, inputs);

  const Bytes actual = run_case(rank, c, inputs[static_cast<size_t>(rank.rank())]);

  if (tolerance == 0.0) {
    EXPECT_TRUE(same_bits(c.spec.dtype, expected, actual)) << text_of(c);
  } else {
    EXPECT_TRUE(close_to(c.spec.dtype, expected, actual, tolerance)) << text_of(c);
  }
}

class CapiAllreduce : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks()) GTEST_SKIP() << "too many ranks for this build";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiAllreduce, ::testing::Values(1, 2, 3, 4, 8));

TEST_P(CapiAllreduce, ReducesEveryDtypeWithEveryOperation) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : kAllDtypes) {
      for (const hvd_reduce_op op : kPlainOps) {
        for (const size_t count : {3u, 1000u}) {
          expect_case(rank, {.spec = {.dtype = dtype, .op = op}, .count = count});
        }
      }
    }
  });
}

TEST_P(CapiAllreduce, ReducesEverySizeWhereverTheBuffersLie) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const size_t count : {0u, 1u, 3u, 17u, 1000u, 5000u, 100000u}) {
      for (const Buffers buffers :
           {Buffers::kPrivate, Buffers::kShared, Buffers::kMixed, Buffers::kMixedAcrossRanks}) {
        for (const bool in_place : {true, false}) {
          if (buffers == Buffers::kMixed && in_place) continue;
          expect_case(rank, {.count = count, .buffers = buffers, .in_place = in_place});
        }
      }
    }
  });
}

TEST_P(CapiAllreduce, ReducesLongStreamsOfEveryDtype) {
  run_processes(GetParam(), [](RankProcess& rank) {
    int turn = 0;
    for (const hvd_dtype dtype : kAllDtypes) {
      const Buffers buffers = ++turn % 2 == 0 ? Buffers::kShared : Buffers::kPrivate;
      expect_case(rank, {.spec = {.dtype = dtype, .op = kPlainOps[turn % 5]},
                         .count = 70001,
                         .buffers = buffers,
                         .in_place = turn % 3 != 0});
    }
  });
}

TEST_P(CapiAllreduce, ReducesMillionsOfElements) {
  if (GetParam() > 4) GTEST_SKIP() << "covered by fewer ranks";
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const Buffers buffers : {Buffers::kPrivate, Buffers::kShared}) {
      expect_case(rank, {.spec = {.op = HVD_OP_AVERAGE}, .count = 1000003, .buffers = buffers});
    }
  });
}

TEST_P(CapiAllreduce, AcceptsBuffersThatAreNotAligned) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const size_t offset : {1u, 4u, 63u}) {
      for (const size_t count : {5u, 3000u, 50000u}) {
        for (const Buffers buffers : {Buffers::kPrivate, Buffers::kShared}) {
          expect_case(rank, {.count = count, .buffers = buffers, .offset_bytes = offset});
        }
      }
    }
  });
}

TEST_P(CapiAllreduce, AppliesPowerOfTwoFactorsExactlyToEveryDtype) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : kAllDtypes) {
      for (const hvd_reduce_op op : kPlainOps) {
        if (op == HVD_OP_PRODUCT && dtype == HVD_INT64)
          continue;  // float64 cannot hold the product
        expect_case(rank, {.spec = {.dtype = dtype, .op = op, .prescale = 0.5, .postscale = 4.0},
                           .count = 37});
        expect_case(rank, {.spec = {.dtype = dtype, .op = op, .prescale = 2.0}, .count = 6000});
      }
    }
  });
}

TEST_P(CapiAllreduce, AppliesOtherFactorsWithinTheRoundingOfTheDtype) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const struct {
      hvd_dtype dtype;
      double tolerance;
    } rows[] = {
        {HVD_FLOAT16, 4e-3}, {HVD_BFLOAT16, 4e-2}, {HVD_FLOAT32, 1e-6}, {HVD_FLOAT64, 1e-14}};
    for (const auto& row : rows) {
      for (const size_t count : {9u, 20000u}) {
        const ReduceSpec spec = {
            .dtype = row.dtype, .op = HVD_OP_AVERAGE, .prescale = 0.3, .postscale = 1.7};
        expect_case(rank, {.spec = spec, .count = count}, row.tolerance * rank.size());
      }
    }
  });
}

TEST_P(CapiAllreduce, SendsFloat32SumsInA16BitWireType) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const struct {
      int wire;
      double tolerance;
    } rows[] = {{HVD_FLOAT16, 2e-3}, {HVD_BFLOAT16, 1.6e-2}};
    for (const auto& row : rows) {
      for (const size_t count : {5u, 2000u, 60000u}) {
        const ReduceCase c = {.spec = {.op = HVD_OP_AVERAGE}, .count = count};
        const auto inputs = make_data_of_all(rank.size(), {.count = count, .salt = 5});
        const Bytes expected = reference_allreduce(c.spec, inputs);

        const Bytes actual = run_case(rank, c, inputs[static_cast<size_t>(rank.rank())], row.wire);

        EXPECT_TRUE(close_to(HVD_FLOAT32, expected, actual, row.tolerance)) << text_of(c);
        expect_same_on_all_ranks(rank, actual);
      }
    }
  });
}

TEST_P(CapiAllreduce, WrapsIntegersThatOverflow) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<uint8_t> values(100, 200);
    const auto call = Call(HVD_ALLREDUCE, "wrap", HVD_UINT8, {100}).in_place(values.data());

    ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();

    EXPECT_EQ(values, std::vector<uint8_t>(100, static_cast<uint8_t>(200 * rank.size())));
  });
}

TEST_P(CapiAllreduce, TruncatesIntegerAveragesTowardsZero) {
  run_processes(GetParam(), [](RankProcess& rank) {
    std::vector<int32_t> values = {-1, 1, 7, -7, rank.rank()};
    const int n = rank.size();
    const std::vector<int32_t> expected = {-1, 1, 7, -7, (n * (n - 1) / 2) / n};
    const auto call =
        Call(HVD_ALLREDUCE, "average", HVD_INT32, {5}).in_place(values.data()).op(HVD_OP_AVERAGE);

    ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();

    EXPECT_EQ(values, expected);
  });
}

TEST_P(CapiAllreduce, TakesScalarsAndManyDimensions) {
  run_processes(GetParam(), [](RankProcess& rank) {
    double scalar = rank.rank();
    ASSERT_EQ(Call(HVD_ALLREDUCE, "scalar", HVD_FLOAT64, {}).in_place(&scalar).run(), HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(scalar, rank.size() * (rank.size() - 1) / 2.0);

    std::vector<float> box(2 * 3 * 5, 1.0f);
    ASSERT_EQ(Call(HVD_ALLREDUCE, "box", HVD_FLOAT32, {2, 1, 3, 5}).in_place(box.data()).run(),
              HVD_OK)
        << hvd_last_error();
    EXPECT_EQ(box, std::vector<float>(30, static_cast<float>(rank.size())));
  });
}

}  // namespace
}  // namespace hvd::testing
