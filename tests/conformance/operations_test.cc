// Every operation x dtype x world size, private and shared buffers, against a plain reference.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/support/process_ranks.h"
#include "tests/support/thread_ranks.h"

namespace hvd::testing {
namespace {

// Through the record, through the eager ring, just above, several chunks.
constexpr size_t kCounts[] = {0, 1, 13, 700, 9000, 70001};

class Operations : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks())
      GTEST_SKIP() << "instrumented builds run up to " << max_test_ranks() << " ranks";
  }
};

std::string call_name(const char* what, DType dtype, size_t count, int variant) {
  return std::string(what) + "." + std::string(dtype_name(dtype)) + "." + std::to_string(count) +
         "." + std::to_string(variant);
}

hvd_dtype code(DType dtype) { return static_cast<hvd_dtype>(dtype); }

TEST_P(Operations, AllreduceOfEveryDtypeAndOpEqualsTheReferenceBitForBit) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int d = 0; d < kDTypeCount; ++d) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                                ReduceOp::kProduct}) {
        for (const size_t count : kCounts) {
          const auto dtype = static_cast<DType>(d);
          const DataSpec spec{r.rank(), code(dtype), count, static_cast<uint64_t>(op)};
          const Bytes expected =
              reference_allreduce({code(dtype), static_cast<hvd_reduce_op>(op), 1.0, 1.0},
                                  make_data_of_all(r.size(), spec));
          EngineCall call{.op = op,
                          .dtype = dtype,
                          .name = call_name("ar", dtype, count, static_cast<int>(op)),
                          .shape = {static_cast<int64_t>(count)}};
          for (int repeat = 0; repeat < 2; ++repeat) {  // negotiated, then from the cache
            Bytes data = make_data(spec);
            const Status status = r.run(call, data.data(), data.data());
            ASSERT_TRUE(status) << status.message();
            ASSERT_TRUE(same_result(code(dtype), expected, data, r.size()))
                << call.name << " rank " << r.rank() << " repeat " << repeat;
          }
        }
      }
    }
  });
}

TEST_P(Operations, SharedBuffersGiveTheSameBitsAsPrivateOnes) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt64, DType::kBool}) {
      for (const size_t count : kCounts) {
        if (count == 0) continue;
        const DataSpec spec{r.rank(), code(dtype), count, 7};
        const Bytes expected = reference_allreduce({code(dtype), HVD_OP_AVERAGE, 1.0, 1.0},
                                                   make_data_of_all(r.size(), spec));
        const Bytes input = make_data(spec);
        auto memory = r.engine().alloc_buffer(input.size());
        ASSERT_TRUE(memory) << memory.status().message();
        EngineCall call{.op = ReduceOp::kAverage,
                        .dtype = dtype,
                        .name = call_name("sh", dtype, count, 0),
                        .shape = {static_cast<int64_t>(count)}};
        for (int repeat = 0; repeat < 3; ++repeat) {
          std::memcpy(*memory, input.data(), input.size());
          ASSERT_TRUE(r.run(call, *memory, *memory));
          const auto* data = static_cast<const std::byte*>(*memory);
          ASSERT_TRUE(
              same_result(code(dtype), expected, Bytes(data, data + input.size()), r.size()))
              << call.name;
        }
        ASSERT_TRUE(r.engine().barrier(0, Deadline::never()));
        ASSERT_TRUE(r.engine().free_buffer(*memory));
      }
    }
    if (r.size() > 1 && simulated_hosts(r.size()) == 1) {
      EXPECT_GT(r.engine().statistics().shared_operations.get(), 0u);
    }
  });
}

TEST_P(Operations, SharedOnSomeRanksOnlyTakesThePrivatePath) {
  run_ranks(GetParam(), [](TestRank& r) {
    constexpr size_t kCount = 20000;
    const DataSpec spec{r.rank(), HVD_FLOAT32, kCount, 1};
    const Bytes expected =
        reference_allreduce({HVD_FLOAT32, HVD_OP_SUM, 1.0, 1.0}, make_data_of_all(r.size(), spec));
    Bytes mine = make_data(spec);
    auto memory = r.engine().alloc_buffer(mine.size());
    ASSERT_TRUE(memory);
    EngineCall call{.name = "mixed", .shape = {kCount}};
    for (int repeat = 0; repeat < 3; ++repeat) {
      void* data = r.rank() == 0 ? *memory : mine.data();
      const Bytes input = make_data(spec);
      std::memcpy(data, input.data(), input.size());
      ASSERT_TRUE(r.run(call, data, data));
      const auto* bytes = static_cast<const std::byte*>(data);
      ASSERT_TRUE(same_result(HVD_FLOAT32, expected, Bytes(bytes, bytes + input.size()), r.size()));
    }
  });
}

TEST_P(Operations, FactorsScaleEveryNumericDtype) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int d = 0; d < kDTypeCount; ++d) {
      for (const size_t count : {size_t{5}, size_t{9000}}) {
        const auto dtype = static_cast<DType>(d);
        const DataSpec spec{r.rank(), code(dtype), count, 3};
        const Bytes expected = reference_allreduce({code(dtype), HVD_OP_SUM, 2.0, 0.5},
                                                   make_data_of_all(r.size(), spec));
        EngineCall call{.dtype = dtype,
                        .name = call_name("scale", dtype, count, 0),
                        .prescale = 2.0,
                        .postscale = 0.5,
                        .shape = {static_cast<int64_t>(count)}};
        for (int repeat = 0; repeat < 2; ++repeat) {
          const Bytes input = make_data(spec);
          Bytes output(input.size());
          ASSERT_TRUE(r.run(call, input.data(), output.data()));
          ASSERT_TRUE(same_result(code(dtype), expected, output, r.size())) << call.name;
        }
      }
    }
  });
}

TEST_P(Operations, WireTypesGiveEqualBitsOnAllRanksCloseToTheSum) {
  for (const size_t count : {size_t{10}, size_t{1000}, size_t{50000}}) {
    for (const int32_t wire :
         {static_cast<int32_t>(DType::kFloat16), static_cast<int32_t>(DType::kBfloat16)}) {
      run_ranks(GetParam(), [&](TestRank& r) {
        const DataSpec spec{r.rank(), HVD_FLOAT32, count, 9};
        const Bytes expected = reference_allreduce({HVD_FLOAT32, HVD_OP_AVERAGE, 1.0, 1.0},
                                                   make_data_of_all(r.size(), spec));
        EngineCall call{.op = ReduceOp::kAverage,
                        .name = "wire",
                        .wire = wire,
                        .shape = {static_cast<int64_t>(count)}};
        Bytes once;
        for (int repeat = 0; repeat < 2; ++repeat) {
          Bytes data = make_data(spec);
          ASSERT_TRUE(r.run(call, data.data(), data.data()));
          ASSERT_TRUE(close_to(HVD_FLOAT32, expected, data,
                               wire == static_cast<int32_t>(DType::kFloat16) ? 4e-3 : 3e-2));
          // On several hosts the first call, which is negotiated, may add in another order.
          if (repeat == 0 || simulated_hosts(r.size()) > 1) once = data;
          ASSERT_EQ(once, data) << "the algorithm changed the bits";
        }
        const auto all = r.gather({.kind = wire::Kind::kAllgather,
                                   .dtype = DType::kUint8,
                                   .name = "results",
                                   .shape = {static_cast<int64_t>(once.size())}},
                                  once.data());
        ASSERT_TRUE(all) << all.status().message();
        for (size_t at = 0; at < all->size(); at += once.size())
          ASSERT_EQ(std::memcmp(all->data() + at, once.data(), once.size()), 0) << at;
      });
    }
  }
}

TEST_P(Operations, AllgatherTakesDifferentFirstDimensions) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const int64_t rows : {1, 40, 3000}) {
      std::vector<Bytes> inputs;
      std::vector<int64_t> mine;
      for (int rank = 0; rank < r.size(); ++rank) {
        const int64_t own = rank % 3 == 1 ? 0 : rows + rank;  // some are empty
        inputs.push_back(make_data({rank, HVD_INT32, static_cast<size_t>(own) * 5, 2}));
        if (rank == r.rank()) mine = {own, 5};
      }
      EngineCall call{.kind = wire::Kind::kAllgather,
                      .dtype = DType::kInt32,
                      .name = "ag" + std::to_string(rows),
                      .shape = mine};
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto output = r.gather(call, inputs[static_cast<size_t>(r.rank())].data());
        ASSERT_TRUE(output) << output.status().message();
        ASSERT_TRUE(same_bits(HVD_INT32, reference_allgather(inputs), *output));
      }
    }
  });
}

TEST_P(Operations, BroadcastSendsTheRootsDataFromEveryRoot) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (int root = 0; root < r.size(); ++root) {
      for (const size_t count : kCounts) {
        const Bytes expected = make_data({root, HVD_FLOAT64, count, 4});
        EngineCall call{.kind = wire::Kind::kBroadcast,
                        .dtype = DType::kFloat64,
                        .name = "bc" + std::to_string(root) + "." + std::to_string(count),
                        .root = root,
                        .shape = {static_cast<int64_t>(count)}};
        for (int repeat = 0; repeat < 2; ++repeat) {
          Bytes data = make_data({r.rank(), HVD_FLOAT64, count, 4});
          const Status status = r.run(call, data.data(), data.data());
          ASSERT_TRUE(status) << status.message();
          ASSERT_TRUE(same_bits(HVD_FLOAT64, expected, data));
        }
      }
    }
  });
}

TEST_P(Operations, AlltoallSendsSplitsAndKeepsTheOrderOfSenders) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const int scale : {1, 2000, 9000}) {
      std::vector<std::vector<int32_t>> splits;
      std::vector<Bytes> inputs;
      for (int from = 0; from < r.size(); ++from) {
        splits.emplace_back();
        for (int to = 0; to < r.size(); ++to) splits.back().push_back((from + 2 * to) % 3 * scale);
        const int total = std::accumulate(splits.back().begin(), splits.back().end(), 0);
        inputs.push_back(make_data(
            {from, HVD_FLOAT32, static_cast<size_t>(total + 1) * 3, 5}));  // a row is left over
      }
      const auto me = static_cast<size_t>(r.rank());
      const auto rows = static_cast<int64_t>(inputs[me].size() / 12);
      EngineCall call{.kind = wire::Kind::kAlltoall,
                      .name = "a2a" + std::to_string(scale),
                      .shape = {rows, 3},
                      .splits = splits[me]};
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto output = r.gather(call, inputs[me].data());
        ASSERT_TRUE(output) << output.status().message();
        ASSERT_TRUE(
            same_bits(HVD_FLOAT32, reference_alltoall(inputs, splits, 12, r.rank()), *output));
      }
    }
  });
}

TEST_P(Operations, ReducescatterDealsUnevenRows) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kInt32}) {
      for (const int64_t rows : {int64_t{0}, int64_t{2}, int64_t{11}, int64_t{5003}}) {
        const DataSpec spec{r.rank(), code(dtype), static_cast<size_t>(rows) * 7, 6};
        const Bytes expected =
            reference_reducescatter({{code(dtype), HVD_OP_AVERAGE, 1.0, 1.0}, rows, 7, r.rank()},
                                    make_data_of_all(r.size(), spec));
        const Bytes input = make_data(spec);
        EngineCall call{.kind = wire::Kind::kReducescatter,
                        .op = ReduceOp::kAverage,
                        .dtype = dtype,
                        .name = call_name("rs", dtype, static_cast<size_t>(rows), 0),
                        .shape = {rows, 7}};
        for (int repeat = 0; repeat < 2; ++repeat) {
          auto output = r.gather(call, input.data());
          ASSERT_TRUE(output) << output.status().message();
          ASSERT_TRUE(same_result(code(dtype), expected, *output, r.size())) << call.name;
        }
      }
    }
  });
}

TEST_P(Operations, AdasumFollowsTheRuleForAnyNumberOfRanks) {
  run_ranks(GetParam(), [](TestRank& r) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
      for (const size_t count : {size_t{1}, size_t{100}, size_t{30000}}) {
        const DataSpec spec{r.rank(), code(dtype), count, 8};
        const Bytes expected = reference_allreduce({code(dtype), HVD_OP_ADASUM, 1.0, 1.0},
                                                   make_data_of_all(r.size(), spec));
        EngineCall call{.op = ReduceOp::kAdasum,
                        .dtype = dtype,
                        .name = call_name("ada", dtype, count, 0),
                        .shape = {static_cast<int64_t>(count)}};
        for (int repeat = 0; repeat < 2; ++repeat) {
          Bytes data = make_data(spec);
          const Status status = r.run(call, data.data(), data.data());
          ASSERT_TRUE(status) << status.message();
          ASSERT_TRUE(close_to(code(dtype), expected, data, dtype == DType::kFloat16 ? 1e-2 : 1e-5))
              << call.name;
        }
      }
    }
  });
}

TEST_P(Operations, ProcessSetsWorkSideBySide) {
  if (GetParam() < 3) return;
  std::vector<int32_t> even, odd;
  for (int rank = 0; rank < GetParam(); ++rank) (rank % 2 == 0 ? even : odd).push_back(rank);
  ThreadOptions options;
  options.process_sets = {even, odd};
  run_ranks(
      GetParam(),
      [&](TestRank& r) {
        const auto& members = r.rank() % 2 == 0 ? even : odd;
        for (const size_t count : {size_t{3}, size_t{40000}}) {
          EngineCall inside{.name = "set" + std::to_string(count),
                            .set = 1 + r.rank() % 2,
                            .shape = {static_cast<int64_t>(count)}};
          EngineCall global{.name = "all" + std::to_string(count),
                            .shape = {static_cast<int64_t>(count)}};
          std::vector<Bytes> inputs;
          for (const int32_t rank : members)
            inputs.push_back(make_data({rank, HVD_FLOAT32, count, 1}));
          const Bytes expected = reference_allreduce({HVD_FLOAT32, HVD_OP_SUM, 1.0, 1.0}, inputs);
          const Bytes expected_of_all =
              reference_allreduce({HVD_FLOAT32, HVD_OP_SUM, 1.0, 1.0},
                                  make_data_of_all(r.size(), {0, HVD_FLOAT32, count, 1}));
          for (int repeat = 0; repeat < 3; ++repeat) {
            Bytes a = make_data({r.rank(), HVD_FLOAT32, count, 1}), b = a;
            // Both in flight at once, submitted in different orders.
            auto first =
                r.submit(r.rank() < 2 ? inside : global, r.rank() < 2 ? a.data() : b.data(),
                         r.rank() < 2 ? a.data() : b.data());
            auto second =
                r.submit(r.rank() < 2 ? global : inside, r.rank() < 2 ? b.data() : a.data(),
                         r.rank() < 2 ? b.data() : a.data());
            ASSERT_TRUE(first && second);
            ASSERT_TRUE(r.engine().wait(*first, Deadline::never()));
            ASSERT_TRUE(r.engine().wait(*second, Deadline::never()));
            ASSERT_TRUE(r.engine().release(*first));
            ASSERT_TRUE(r.engine().release(*second));
            ASSERT_TRUE(same_result(HVD_FLOAT32, expected, a, r.size()));
            ASSERT_TRUE(same_result(HVD_FLOAT32, expected_of_all, b, r.size()));
          }
        }
      },
      options);
}

// Of odd sizes, so that only the first block begins at a cache line.
TEST(LargeBlocks, ThatCachesCannotHoldArriveWhole) {
  run_ranks(2, [](TestRank& r) {
    const std::vector<std::vector<int32_t>> splits = {{(3 << 20) + 1, (5 << 20) + 2},
                                                      {(1 << 20) + 5, (6 << 20) + 72}};
    std::vector<Bytes> inputs;
    for (int rank = 0; rank < r.size(); ++rank) {
      const auto& mine = splits[static_cast<size_t>(rank)];
      inputs.push_back(make_data({rank, HVD_UINT8, static_cast<size_t>(mine[0] + mine[1]), 6}));
    }
    const auto me = static_cast<size_t>(r.rank());
    const std::vector<int64_t> shape = {static_cast<int64_t>(inputs[me].size())};
    EngineCall gather{.kind = wire::Kind::kAllgather,
                      .dtype = DType::kUint8,
                      .name = "large.gather",
                      .shape = shape};
    EngineCall exchange{.kind = wire::Kind::kAlltoall,
                        .dtype = DType::kUint8,
                        .name = "large.alltoall",
                        .shape = shape,
                        .splits = splits[me]};

    auto gathered = r.gather(gather, inputs[me].data());
    auto exchanged = r.gather(exchange, inputs[me].data());

    ASSERT_TRUE(gathered) << gathered.status().message();
    ASSERT_TRUE(exchanged) << exchanged.status().message();
    EXPECT_TRUE(same_bits(HVD_UINT8, reference_allgather(inputs), *gathered));
    EXPECT_TRUE(same_bits(HVD_UINT8, reference_alltoall(inputs, splits, 1, r.rank()), *exchanged));
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSize, Operations, ::testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace
}  // namespace hvd::testing
