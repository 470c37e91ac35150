// reference.h - what every collective must produce, computed plainly on the inputs of all ranks.
// For tests: deterministic inputs per (rank, dtype, index), reductions in rank order, comparisons
// that name the first wrong element. Numbers: what was pre-scaled is rounded before it is reduced;
// float averages are sum / size, and of equal numbers that number; 16-bit floats accumulate in
// float32 and are rounded once; integer averages are trunc(sum / size); bool Sum is "or", Product
// is "and".
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "horovod/hvd.h"

namespace hvd::testing {

using Bytes = std::vector<std::byte>;

inline constexpr hvd_dtype kAllDtypes[] = {HVD_UINT8,   HVD_INT8,  HVD_UINT16,  HVD_INT16,
                                           HVD_INT32,   HVD_INT64, HVD_FLOAT16, HVD_FLOAT32,
                                           HVD_FLOAT64, HVD_BOOL,  HVD_BFLOAT16};

size_t element_bytes(hvd_dtype dtype);
const char* dtype_text(hvd_dtype dtype);

struct DataSpec {
  int rank = 0;
  hvd_dtype dtype = HVD_FLOAT32;
  size_t count = 0;
  uint64_t salt = 0;  // different data for the same rank
};
// Floats in (-2, 2) whose sums round; integers so small that eight ranks don't overflow a sum.
Bytes make_data(const DataSpec& spec);
std::vector<Bytes> make_data_of_all(int size, DataSpec spec);

struct ReduceSpec {
  hvd_dtype dtype = HVD_FLOAT32;
  hvd_reduce_op op = HVD_OP_SUM;  // also HVD_OP_ADASUM
  double prescale = 1.0;
  double postscale = 1.0;
};
// `inputs` in the order of the set's ranks.
Bytes reference_allreduce(const ReduceSpec& spec, const std::vector<Bytes>& inputs);
Bytes reference_allgather(const std::vector<Bytes>& inputs);
// Rows per rank: the first rows % size ranks get one more.
std::vector<int64_t> reference_scatter_rows(int64_t rows, int size);
struct ScatterSpec {
  ReduceSpec reduce;
  int64_t rows = 0;
  size_t row_elements = 1;
  int receiver = 0;
};
Bytes reference_reducescatter(const ScatterSpec& spec, const std::vector<Bytes>& inputs);
// splits[from][to] in rows.
Bytes reference_alltoall(const std::vector<Bytes>& inputs,
                         const std::vector<std::vector<int32_t>>& splits, size_t row_bytes,
                         int receiver);

// One element as a number, for tolerances and messages.
double element_at(hvd_dtype dtype, const Bytes& values, size_t index);

::testing::AssertionResult same_bits(hvd_dtype dtype, const Bytes& expected, const Bytes& actual);
// |actual - expected| <= tolerance * max(1, |expected|) for every element.
::testing::AssertionResult close_to(hvd_dtype dtype, const Bytes& expected, const Bytes& actual,
                                    double tolerance);

}  // namespace hvd::testing
