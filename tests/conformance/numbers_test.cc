// What users compare with no tolerance at all: averages of equal numbers, factors. On every path:
// negotiated and known, small and large, private and shared, single and in groups, on any hosts.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

// Through the record, through the eager ring, just above, several chunks.
constexpr size_t kNumberCounts[] = {1, 13, 700, 9000, 70001};
constexpr DType kFloats[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
constexpr double kFactor = 0.3;  // rounded in every type

hvd_dtype code_of(DType dtype) { return static_cast<hvd_dtype>(dtype); }

// The same on all ranks.
Bytes equal_data(DType dtype, size_t count) { return make_data({0, code_of(dtype), count, 11}); }

// Each number times the factor, rounded to its type.
Bytes times(double factor, DType dtype, const Bytes& data) {
  return reference_allreduce({code_of(dtype), HVD_OP_SUM, factor, 1.0}, {data});
}

std::string call_name(const char* what, DType dtype, size_t count) {
  return std::string(what) + "." + std::string(dtype_name(dtype)) + "." + std::to_string(count);
}

// Negotiated at first, then known.
void expect_bits(TestRank& r, const EngineCall& call, const Bytes& input, const Bytes& expected) {
  for (int repeat = 0; repeat < 2; ++repeat) {
    Bytes output(input.size());
    const Status status = r.run(call, input.data(), output.data());
    ASSERT_TRUE(status) << status.message();
    ASSERT_TRUE(same_bits(code_of(call.dtype), expected, output))
        << call.name << " rank " << r.rank() << " repeat " << repeat;
  }
}

class Numbers : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks())
      GTEST_SKIP() << "instrumented builds run up to " << max_test_ranks() << " ranks";
  }
};

TEST_P(Numbers, EqualNumbersAreTheirOwnAverage) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : kFloats) {
      for (const size_t count : kNumberCounts) {
        const Bytes input = equal_data(dtype, count);
        const EngineCall call{.op = ReduceOp::kAverage,
                              .dtype = dtype,
                              .name = call_name("equal", dtype, count),
                              .shape = {static_cast<int64_t>(count)}};
        ASSERT_NO_FATAL_FAILURE(expect_bits(r, call, input, input));
      }
    }
  });
}

TEST_P(Numbers, EqualNumbersInSharedBuffersAreTheirOwnAverage) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : kFloats) {
      for (const size_t count : kNumberCounts) {
        const Bytes input = equal_data(dtype, count);
        auto memory = r.engine().alloc_buffer(input.size());
        ASSERT_TRUE(memory) << memory.status().message();
        const EngineCall call{.op = ReduceOp::kAverage,
                              .dtype = dtype,
                              .name = call_name("shared", dtype, count),
                              .shape = {static_cast<int64_t>(count)}};
        for (int repeat = 0; repeat < 3; ++repeat) {
          std::memcpy(*memory, input.data(), input.size());
          ASSERT_TRUE(r.run(call, *memory, *memory));
          const auto* data = static_cast<const std::byte*>(*memory);
          ASSERT_TRUE(same_bits(code_of(dtype), input, Bytes(data, data + input.size())));
        }
        ASSERT_TRUE(r.engine().barrier(0, Deadline::never()));
        ASSERT_TRUE(r.engine().free_buffer(*memory));
      }
    }
  });
}

TEST_P(Numbers, EqualNumbersThatAWireTypeCanHoldAreTheirOwnAverage) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType wire : {DType::kFloat16, DType::kBfloat16}) {
      for (const size_t count : kNumberCounts) {
        const Bytes narrow = equal_data(wire, count);
        std::vector<float> input;
        for (size_t i = 0; i < count; ++i)
          input.push_back(static_cast<float>(element_at(code_of(wire), narrow, i)));
        const auto* bytes = reinterpret_cast<const std::byte*>(input.data());
        const Bytes expected(bytes, bytes + count * sizeof(float));
        const EngineCall call{.op = ReduceOp::kAverage,
                              .name = call_name("wire", wire, count),
                              .wire = static_cast<int32_t>(wire),
                              .shape = {static_cast<int64_t>(count)}};
        ASSERT_NO_FATAL_FAILURE(expect_bits(r, call, expected, expected));
      }
    }
  });
}

// Tensors of all float types, some of a length that is small and some that are not.
TEST_P(Numbers, EqualNumbersInAGroupAreTheirOwnAverageAndAreScaledOneByOne) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const double factor : {1.0, kFactor}) {
      for (const size_t scale : {size_t{1}, size_t{30}}) {
        std::vector<Bytes> inputs, outputs, expected;
        std::vector<std::string> names;
        std::vector<std::vector<int64_t>> shapes;
        std::vector<DType> dtypes;
        for (const DType dtype : kFloats) {
          for (const size_t count : {3 * scale, 70 * scale, 333 * scale}) {
            inputs.push_back(equal_data(dtype, count));
            outputs.emplace_back(inputs.back().size());
            expected.push_back(times(factor, dtype, inputs.back()));
            names.push_back(call_name("group", dtype, count) + std::to_string(factor));
            shapes.push_back({static_cast<int64_t>(count)});
            dtypes.push_back(dtype);
          }
        }
        std::vector<engine::TensorArg> tensors(inputs.size());
        for (size_t t = 0; t < tensors.size(); ++t) {
          tensors[t].name = names[t];
          tensors[t].dtype = dtypes[t];
          tensors[t].shape = shapes[t];
          tensors[t].input = inputs[t].data();
          tensors[t].output = outputs[t].data();
        }
        engine::Submission group;
        group.reduce_op = ReduceOp::kAverage;
        group.prescale = factor;
        group.tensors = tensors;
        for (int repeat = 0; repeat < 2; ++repeat) {
          const Status status = r.engine().run(0, group, Deadline::never());
          ASSERT_TRUE(status) << status.message();
          for (size_t t = 0; t < tensors.size(); ++t)
            ASSERT_TRUE(same_bits(code_of(dtypes[t]), expected[t], outputs[t])) << names[t];
        }
      }
    }
  });
}

// The rows that a reducescatter gives to a rank.
Bytes rows_of(const Bytes& whole, const std::vector<int64_t>& rows, size_t row_bytes, int rank) {
  size_t first = 0;
  for (int r = 0; r < rank; ++r) first += static_cast<size_t>(rows[static_cast<size_t>(r)]);
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first * row_bytes);
  const size_t count = static_cast<size_t>(rows[static_cast<size_t>(rank)]);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(count * row_bytes));
}

TEST_P(Numbers, EqualRowsOfAReducescatterAreTheirOwnAverageAndAreScaledOneByOne) {
  constexpr size_t kRow = 7;
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : kFloats) {
      for (const size_t rows : {size_t{2}, size_t{11}, size_t{5003}}) {
        const Bytes input = equal_data(dtype, rows * kRow);
        const Bytes expected = rows_of(times(kFactor, dtype, input),
                                       reference_scatter_rows(static_cast<int64_t>(rows), r.size()),
                                       kRow * dtype_bytes(dtype), r.rank());
        const EngineCall call{.kind = wire::Kind::kReducescatter,
                              .op = ReduceOp::kAverage,
                              .dtype = dtype,
                              .name = call_name("rows", dtype, rows),
                              .prescale = kFactor,
                              .shape = {static_cast<int64_t>(rows), kRow}};
        for (int repeat = 0; repeat < 2; ++repeat) {
          auto output = r.gather(call, input.data());
          ASSERT_TRUE(output) << output.status().message();
          ASSERT_TRUE(same_bits(code_of(dtype), expected, *output)) << call.name;
        }
      }
    }
  });
}

// Sum of what was scaled, whoever scales it: here the rank, there its user.
TEST_P(Numbers, PrescalingIsRoundedBeforeAnythingIsAdded) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : kFloats) {
      for (const size_t count : kNumberCounts) {
        const Bytes input = make_data({r.rank(), code_of(dtype), count, 12});
        const Bytes by_user = times(kFactor, dtype, input);
        Bytes expected(input.size());
        EngineCall call{.dtype = dtype,
                        .name = call_name("user", dtype, count),
                        .shape = {static_cast<int64_t>(count)}};
        ASSERT_TRUE(r.run(call, by_user.data(), expected.data()));
        call.name = call_name("rank", dtype, count);
        call.prescale = kFactor;
        ASSERT_NO_FATAL_FAILURE(expect_bits(r, call, input, expected));
      }
    }
  });
}

TEST_P(Numbers, TheSumOfPrescaledEqualNumbersIsAMultipleOfOne) {
  if (GetParam() > 3) return;  // further additions are rounded on their way
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : kFloats) {
      for (const size_t count : kNumberCounts) {
        const Bytes input = equal_data(dtype, count);
        const EngineCall call{.dtype = dtype,
                              .name = call_name("multiple", dtype, count),
                              .prescale = kFactor,
                              .shape = {static_cast<int64_t>(count)}};
        ASSERT_NO_FATAL_FAILURE(
            expect_bits(r, call, input, times(r.size(), dtype, times(kFactor, dtype, input))));
      }
    }
  });
}

TEST_P(Numbers, PostscalingMultipliesTheAverage) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const size_t count : kNumberCounts) {
        const Bytes input = equal_data(dtype, count);
        const EngineCall call{.op = ReduceOp::kAverage,
                              .dtype = dtype,
                              .name = call_name("post", dtype, count),
                              .postscale = kFactor,
                              .shape = {static_cast<int64_t>(count)}};
        ASSERT_NO_FATAL_FAILURE(expect_bits(r, call, input, times(kFactor, dtype, input)));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSize, Numbers, ::testing::Values(2, 3, 4, 5, 6, 7, 8));

}  // namespace
}  // namespace hvd::testing
