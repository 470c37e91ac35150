// plain_reference.h - what the kernels must compute, one element at a time and without their
// tricks. For the tests of reduce/ alone.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reduce/kernels.h"

namespace hvd::plain {

using Bytes = std::vector<std::byte>;

inline constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                    ReduceOp::kProduct};
std::vector<DType> all_dtypes();
// Every table this machine can run, as a list.
std::vector<const Kernels*> all_tables();

// A small floating-point format, by its definition.
struct HalfFormat {
  int exponent_bits;
  int mantissa_bits;
};
inline constexpr HalfFormat kFloat16Format{5, 10};
inline constexpr HalfFormat kBfloat16Format{8, 7};
double value_of(HalfFormat format, uint16_t bits);
uint16_t nearest(HalfFormat format, double value);  // ties to even
bool is_nan(HalfFormat format, uint16_t bits);

// Random elements; with kSpecial one in eight is a NaN, an infinity, a zero, a subnormal or an
// extreme.
enum class Values { kOrdinary, kSpecial };
Bytes random_elements(DType dtype, size_t count, uint64_t seed, Values values);

Bytes reduce(DType dtype, ReduceOp op, const std::vector<Bytes>& sources, const Scale& post);

// Equal bits, or both NaN where the dtype has one.
::testing::AssertionResult same_numbers(DType dtype, const Bytes& expected, const void* actual);

// Memory with a known pattern before and after, starting at an odd address if asked to.
class Fenced {
 public:
  Fenced(size_t bytes, size_t misalignment);
  Fenced(const Bytes& content, size_t misalignment);
  void* data() { return memory_.data() + begin_; }
  const void* data() const { return memory_.data() + begin_; }
  Bytes content() const;
  bool fences_intact() const;

 private:
  Bytes memory_;
  size_t begin_;
  size_t bytes_;
};

}  // namespace hvd::plain
