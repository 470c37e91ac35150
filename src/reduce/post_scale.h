// post_scale.h - what Scale means for each kind of number, prepared once per call.
// A Post has apply(x) for one number and is_identity(). Integer posts work number by number; the
// loops around them are left to the compiler. Internal linkage (see half.h). Pure; any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "reduce/kernels.h"

namespace hvd {
namespace {

// float64 by factor / divisor, all narrower ones by that quotient rounded to float32. Of float32
// and float64 only what is_quotient() leaves over: no divisor, or a power of two.
template <class Float>
struct FloatPost {
  Float quotient;

  explicit FloatPost(const Scale& scale)
      : quotient(static_cast<Float>(scale.factor / static_cast<double>(scale.divisor))) {}
  bool is_identity() const { return quotient == Float{1}; }
  // `Value` is Float or a vector of it.
  template <class Value>
  [[gnu::always_inline]] Value apply(Value value) const {
    return value * quotient;
  }
};

// Integers of at most 32 bits. In float64 every product with factor 1 is exact and no quotient of
// such integers rounds up to the next whole number, so truncation gives the exact integer division.
template <class Integer>
struct IntegerPost {
  double factor;
  double divisor;

  explicit IntegerPost(const Scale& scale)
      : factor(scale.factor), divisor(static_cast<double>(scale.divisor)) {}
  bool is_identity() const { return factor == 1.0 && divisor == 1.0; }
  [[gnu::always_inline]] Integer apply(Integer value) const {
    constexpr double kLowest = static_cast<double>(std::numeric_limits<Integer>::min());
    constexpr double kHighest = static_cast<double>(std::numeric_limits<Integer>::max());
    double result = static_cast<double>(value) * factor / divisor;
    result = result > kHighest ? kHighest : result;
    result = result < kLowest ? kLowest : result;
    result = result == result ? result : 0.0;
    return static_cast<Integer>(static_cast<int32_t>(result));
  }
};

template <>
struct IntegerPost<int64_t> {
  double factor;
  int64_t divisor;

  explicit IntegerPost(const Scale& scale) : factor(scale.factor), divisor(scale.divisor) {}
  bool is_identity() const { return factor == 1.0 && divisor == 1; }
  int64_t apply(int64_t value) const {
    if (factor == 1.0) return value / divisor;
    constexpr double kTwoTo63 = 9223372036854775808.0;
    const double result = static_cast<double>(value) * factor / static_cast<double>(divisor);
    if (result >= kTwoTo63) return INT64_MAX;
    if (result < -kTwoTo63) return INT64_MIN;
    return result == result ? static_cast<int64_t>(result) : 0;
  }
};

// Values are 0 or 1, so two answers are all there is.
struct BoolPost {
  uint8_t of_false;
  uint8_t of_true;

  explicit BoolPost(const Scale& scale)
      : of_false(0.0 * scale.factor != 0.0), of_true(scale.factor != 0.0) {}
  bool is_identity() const { return of_false == 0 && of_true == 1; }
  uint8_t apply(uint8_t value) const { return value != 0 ? of_true : of_false; }
};

}  // namespace
}  // namespace hvd
