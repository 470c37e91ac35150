// Allgather, broadcast, alltoall, reducescatter and barrier over the C ABI with real processes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/process_ranks.h"
#include "tests/support/reference.h"

namespace hvd::testing {
namespace {

class CapiMovement : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > max_test_ranks()) GTEST_SKIP() << "too many ranks for this build";
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, CapiMovement, ::testing::Values(1, 2, 3, 4, 8));

std::string next_name(const char* prefix) {
  static int counter = 0;
  return prefix + std::to_string(++counter);
}

int64_t rows_of(int rank, int64_t base) { return base * ((rank * 7 + 2) % 4); }  // 0 for some ranks

void expect_allgather(RankProcess& rank, hvd_dtype dtype, int64_t base, int64_t row_elements) {
  std::vector<Bytes> inputs;
  int64_t total_rows = 0;
  for (int r = 0; r < rank.size(); ++r) {
    const int64_t rows = rows_of(r, base);
    total_rows += rows;
    inputs.push_back(
        make_data({.rank = r, .dtype = dtype, .count = static_cast<size_t>(rows * row_elements)}));
  }
  const Bytes& mine = inputs[static_cast<size_t>(rank.rank())];
  const auto call =
      Call(HVD_ALLGATHER, next_name("gather"), dtype, {rows_of(rank.rank(), base), row_elements})
          .input(mine.data());

  const hvd_handle handle = call.submitted();
  ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

  EXPECT_TRUE(same_bits(dtype, reference_allgather(inputs), output_bytes(handle)));
  hvd_output output = {};
  output.struct_size = sizeof(output);
  ASSERT_EQ(hvd_get_output(handle, 0, &output), HVD_OK);
  ASSERT_EQ(output.ndim, 2);
  EXPECT_EQ(output.shape[0], total_rows);
  EXPECT_EQ(output.shape[1], row_elements);
  EXPECT_EQ(output.dtype, dtype);
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

TEST_P(CapiMovement, AllgatherPutsUnevenAndEmptyPartsInRankOrder) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : kAllDtypes) expect_allgather(rank, dtype, 5, 3);
    for (const int64_t base : {0, 1, 17, 1000, 30000}) {
      rank.phase("allgather base " + std::to_string(base));
      expect_allgather(rank, HVD_FLOAT32, base, 1);
      expect_allgather(rank, HVD_FLOAT64, base, 4);
    }
  });
}

TEST_P(CapiMovement, AllgatherFollowsShapesThatChangeUnderTheSameName) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (int64_t round = 0; round < 20; ++round) {
      const std::vector<int64_t> mine(static_cast<size_t>((rank.rank() + round) % 3), round);
      const auto call = Call(HVD_ALLGATHER, "same", HVD_INT64, {static_cast<int64_t>(mine.size())})
                            .input(mine.data());
      int64_t rows = 0;
      for (int r = 0; r < rank.size(); ++r) rows += (r + round) % 3;

      const hvd_handle handle = call.submitted();
      ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

      const Bytes bytes = output_bytes(handle);
      ASSERT_EQ(bytes.size(), static_cast<size_t>(rows) * 8) << "round " << round;
      for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
        EXPECT_EQ(element_at(HVD_INT64, bytes, i), static_cast<double>(round));
      }
      EXPECT_EQ(hvd_release(handle), HVD_OK);
    }
  });
}

void expect_broadcast(RankProcess& rank, hvd_dtype dtype, size_t count, int root,
                      Placement placement) {
  const Bytes expected = make_data({.rank = root, .dtype = dtype, .count = count});
  const Bytes mine = make_data({.rank = rank.rank(), .dtype = dtype, .count = count});
  TestBuffer buffer(placement, mine.size());
  buffer.fill(mine);
  const auto call = Call(HVD_BROADCAST, next_name("cast"), dtype, {static_cast<int64_t>(count)})
                        .in_place(buffer.data())
                        .root(root);

  ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();

  EXPECT_TRUE(same_bits(dtype, expected, buffer.bytes()))
      << dtype_text(dtype) << " count " << count << " root " << root;
}

TEST_P(CapiMovement, BroadcastCopiesTheRootFromEveryRoot) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (int root = 0; root < rank.size(); ++root) {
      for (const size_t count : {0u, 1u, 17u, 1000u, 5000u, 100000u}) {
        rank.phase("broadcast " + std::to_string(count));
        expect_broadcast(rank, HVD_FLOAT32, count, root, Placement::kPrivate);
        expect_broadcast(rank, HVD_FLOAT32, count, root, Placement::kShared);
      }
    }
    for (const hvd_dtype dtype : kAllDtypes) {
      expect_broadcast(rank, dtype, 333, rank.size() - 1, Placement::kPrivate);
    }
  });
}

TEST_P(CapiMovement, BroadcastOutOfPlaceIgnoresTheInputOfTheOthers) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const std::vector<float> root_input(500, 3.5f);
    std::vector<float> output(500, -1.0f);
    auto call = Call(HVD_BROADCAST, "cast", HVD_FLOAT32, {500}).output(output.data());
    call.input(rank.rank() == 0 ? root_input.data() : output.data());

    ASSERT_EQ(call.run(), HVD_OK) << hvd_last_error();

    EXPECT_EQ(output, root_input);
  });
}

// splits[from][to]; the last rows of some senders stay at home.
std::vector<std::vector<int32_t>> make_splits(int size, int32_t base) {
  std::vector<std::vector<int32_t>> splits;
  for (int from = 0; from < size; ++from) {
    auto& row = splits.emplace_back();
    for (int to = 0; to < size; ++to) row.push_back(base * ((from * 3 + to * 5) % 4));
  }
  return splits;
}

void expect_alltoall(RankProcess& rank, hvd_dtype dtype, int32_t base, int64_t row_elements) {
  const auto splits = make_splits(rank.size(), base);
  std::vector<Bytes> inputs;
  std::vector<int64_t> rows;
  for (int r = 0; r < rank.size(); ++r) {
    int64_t sum = r % 2;  // one row more than is sent
    for (const int32_t split : splits[static_cast<size_t>(r)]) sum += split;
    rows.push_back(sum);
    inputs.push_back(
        make_data({.rank = r, .dtype = dtype, .count = static_cast<size_t>(sum * row_elements)}));
  }
  const auto me = static_cast<size_t>(rank.rank());
  const auto call = Call(HVD_ALLTOALL, next_name("exchange"), dtype, {rows[me], row_elements})
                        .input(inputs[me].data())
                        .splits(splits[me]);

  const hvd_handle handle = call.submitted();
  ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

  const size_t row_bytes = static_cast<size_t>(row_elements) * element_bytes(dtype);
  EXPECT_TRUE(same_bits(dtype, reference_alltoall(inputs, splits, row_bytes, rank.rank()),
                        output_bytes(handle)));
  hvd_output output = {};
  output.struct_size = sizeof(output);
  ASSERT_EQ(hvd_get_output(handle, 0, &output), HVD_OK);
  ASSERT_EQ(output.received_splits_count, rank.size());
  for (size_t from = 0; from < splits.size(); ++from) {
    EXPECT_EQ(output.received_splits[from], splits[from][me]) << "from rank " << from;
  }
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

TEST_P(CapiMovement, AlltoallSendsRowsByUnevenSplits) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : kAllDtypes) expect_alltoall(rank, dtype, 2, 3);
    for (const int32_t base : {0, 1, 100, 5000}) expect_alltoall(rank, HVD_FLOAT32, base, 2);
  });
}

TEST_P(CapiMovement, AlltoallWithoutSplitsDealsEvenly) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const int n = rank.size();
    std::vector<int32_t> input;
    std::vector<int32_t> expected;
    for (int to = 0; to < n; ++to) {
      input.insert(input.end(), {rank.rank() * 100 + to, -1});
      expected.insert(expected.end(), {to * 100 + rank.rank(), -1});
    }
    const auto call = Call(HVD_ALLTOALL, "even", HVD_INT32, {2 * n}).input(input.data());

    const hvd_handle handle = call.submitted();
    ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

    const Bytes bytes = output_bytes(handle);
    ASSERT_EQ(bytes.size(), expected.size() * 4);
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
    EXPECT_EQ(hvd_release(handle), HVD_OK);
  });
}

void expect_reducescatter(RankProcess& rank, const ReduceSpec& spec, int64_t rows,
                          size_t row_elements) {
  const size_t count = static_cast<size_t>(rows) * row_elements;
  const auto inputs = make_data_of_all(rank.size(), {.dtype = spec.dtype, .count = count});
  const auto me = static_cast<size_t>(rank.rank());
  const Bytes expected = reference_reducescatter(
      {.reduce = spec, .rows = rows, .row_elements = row_elements, .receiver = rank.rank()},
      inputs);
  const auto call = Call(HVD_REDUCESCATTER, next_name("scatter"), spec.dtype,
                         {rows, static_cast<int64_t>(row_elements)})
                        .input(inputs[me].data())
                        .op(spec.op)
                        .scale(spec.prescale, spec.postscale);

  const hvd_handle handle = call.submitted();
  ASSERT_EQ(hvd_wait(handle, HVD_FOREVER), HVD_OK) << hvd_last_error();

  EXPECT_TRUE(same_bits(spec.dtype, expected, output_bytes(handle)))
      << dtype_text(spec.dtype) << " rows " << rows << " op " << spec.op;
  EXPECT_EQ(hvd_release(handle), HVD_OK);
}

TEST_P(CapiMovement, ReducescatterLeavesUnevenBlocksOfRows) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (const hvd_dtype dtype : kAllDtypes) {
      expect_reducescatter(rank, {.dtype = dtype, .op = HVD_OP_SUM}, 11, 3);
      expect_reducescatter(rank, {.dtype = dtype, .op = HVD_OP_AVERAGE}, 7, 50);
    }
    for (const int64_t rows : {0, 1, 2, 5, 64, 1001, 40000}) {
      rank.phase("reducescatter rows " + std::to_string(rows));
      expect_reducescatter(rank, {.op = HVD_OP_AVERAGE}, rows, 2);
    }
    expect_reducescatter(rank, {.op = HVD_OP_SUM, .prescale = 0.5, .postscale = 8.0}, 33, 4);
  });
}

TEST_P(CapiMovement, OutputsMayBeGivenByTheCaller) {
  run_processes(GetParam(), [](RankProcess& rank) {
    const auto inputs = make_data_of_all(rank.size(), {.count = 40});
    const Bytes& mine = inputs[static_cast<size_t>(rank.rank())];
    Bytes gathered(mine.size() * inputs.size());

    ASSERT_EQ(Call(HVD_ALLGATHER, "given", HVD_FLOAT32, {40})
                  .input(mine.data())
                  .output(gathered.data())
                  .run(),
              HVD_OK)
        << hvd_last_error();

    EXPECT_EQ(gathered, reference_allgather(inputs));
  });
}

TEST_P(CapiMovement, NobodyLeavesABarrierBeforeEverybodyCame) {
  run_processes(GetParam(), [](RankProcess& rank) {
    for (int round = 1; round <= 200; ++round) {
      rank.board().add(0, 1);
      ASSERT_EQ(hvd_barrier(0, HVD_FOREVER), HVD_OK) << hvd_last_error();
      ASSERT_GE(rank.board().get(0), int64_t{round} * rank.size());
    }
  });
}

}  // namespace
}  // namespace hvd::testing
