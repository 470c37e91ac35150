#include "plain_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

namespace hvd::plain {
namespace {

constexpr size_t kFenceBytes = 192;
constexpr std::byte kFence{0xa5};

// Calls `body` with a value of the C++ type in which the dtype lies in memory.
template <class Body>
auto with_storage(DType dtype, Body body) {
  switch (dtype) {
    case DType::kInt8:
      return body(int8_t{});
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBfloat16:
      return body(uint16_t{});
    case DType::kInt16:
      return body(int16_t{});
    case DType::kInt32:
      return body(int32_t{});
    case DType::kInt64:
      return body(int64_t{});
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kUint8:
    case DType::kBool:
      break;
  }
  return body(uint8_t{});
}

template <class T>
T element(const void* bytes, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(bytes) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  if (op == ReduceOp::kMin) return b < a ? b : a;
  if (op == ReduceOp::kMax) return a < b ? b : a;
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<unsigned __int128>(a);
    const auto y = static_cast<unsigned __int128>(b);
    return static_cast<T>(op == ReduceOp::kSum ? x + y : x * y);
  } else {
    return op == ReduceOp::kSum ? a + b : a * b;
  }
}

template <class T>
T scaled(T value, const Scale& scale) {
  if constexpr (std::is_same_v<T, double>) {
    return value * (scale.factor / static_cast<double>(scale.divisor));
  } else if constexpr (std::is_same_v<T, float>) {
    return value * static_cast<float>(scale.factor / static_cast<double>(scale.divisor));
  } else {
    if (scale.factor == 1.0) return static_cast<T>(value / scale.divisor);
    const double exact =
        static_cast<double>(value) * scale.factor / static_cast<double>(scale.divisor);
    if (std::isnan(exact)) return 0;
    const double whole = std::trunc(exact);
    if (whole >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
      return std::numeric_limits<T>::max();
    }
    if (whole <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    return static_cast<T>(whole);
  }
}

HalfFormat half_format(DType dtype) {
  return dtype == DType::kFloat16 ? kFloat16Format : kBfloat16Format;
}
bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

// Rather than multiplied by an inverse, which is as good where it is exact.
bool is_divided(size_t sources, const Scale& post) {
  const bool is_power_of_two = (post.divisor & (post.divisor - 1)) == 0;
  if (post.divisor == 1 || (is_power_of_two && sources <= 2)) return false;
  return post.factor != static_cast<double>(post.divisor);
}

template <class T>
bool same_element(const Bytes& a, const Bytes& b, size_t i) {
  return std::memcmp(a.data() + i * sizeof(T), b.data() + i * sizeof(T), sizeof(T)) == 0;
}

// One output element: load all sources, combine in order, scale, store.
template <class T>
T reduce_one(DType dtype, ReduceOp op, const std::vector<Bytes>& sources, size_t i,
             const Scale& post) {
  if (is_half(dtype)) {
    const HalfFormat format = half_format(dtype);
    const auto load = [&](const Bytes& source) {
      return static_cast<float>(value_of(format, element<uint16_t>(source.data(), i)));
    };
    float value = load(sources[0]);
    for (size_t s = 1; s < sources.size(); ++s) value = combine(op, value, load(sources[s]));
    return static_cast<T>(nearest(format, scaled(value, post)));
  }
  if (dtype == DType::kBool) {
    bool value = element<uint8_t>(sources[0].data(), i) != 0;
    for (size_t s = 1; s < sources.size(); ++s) {
      const bool next = element<uint8_t>(sources[s].data(), i) != 0;
      const bool either = op == ReduceOp::kSum || op == ReduceOp::kMax;
      value = either ? value || next : value && next;
    }
    return static_cast<T>(value * post.factor != 0.0);
  }
  T value = element<T>(sources[0].data(), i);
  bool all_equal = true;
  for (size_t s = 1; s < sources.size(); ++s) {
    value = combine(op, value, element<T>(sources[s].data(), i));
    all_equal = all_equal && same_element<T>(sources[0], sources[s], i);
  }
  if (post == Scale{}) return value;
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kSum && is_divided(sources.size(), post)) {
      const bool is_average = post.divisor == static_cast<int64_t>(sources.size());
      const T mean = is_average && all_equal ? element<T>(sources[0].data(), i)
                                             : value / static_cast<T>(post.divisor);
      return mean * static_cast<T>(post.factor);
    }
  }
  return scaled(value, post);
}

template <class T>
T special_float(uint64_t choice) {
  using Limits = std::numeric_limits<T>;
  const T values[] = {Limits::quiet_NaN(),  Limits::infinity(), -Limits::infinity(), T{0}, -T{0},
                      Limits::denorm_min(), Limits::max(),      Limits::lowest()};
  return values[choice % 8];
}

template <class T>
T random_element(DType dtype, std::mt19937_64& random, Values values) {
  const uint64_t bits = random();
  const bool special = values == Values::kSpecial && random() % 8 == 0;
  if constexpr (std::is_floating_point_v<T>) {
    if (special) return special_float<T>(bits);
    return static_cast<T>(static_cast<double>(static_cast<int64_t>(bits)) / 4e18);
  } else if (is_half(dtype)) {
    // All bit patterns are worth a visit, the ordinary ones more often.
    if (special) return static_cast<T>(bits);
    const double value = static_cast<double>(static_cast<int64_t>(bits)) / 4e18;
    return static_cast<T>(nearest(half_format(dtype), value));
  } else {
    return static_cast<T>(special ? bits >> 63 : bits);
  }
}

bool nan_at(DType dtype, const void* bytes, size_t i) {
  if (dtype == DType::kFloat32) return std::isnan(element<float>(bytes, i));
  if (dtype == DType::kFloat64) return std::isnan(element<double>(bytes, i));
  return is_half(dtype) && is_nan(half_format(dtype), element<uint16_t>(bytes, i));
}

}  // namespace

std::vector<DType> all_dtypes() {
  std::vector<DType> dtypes;
  for (int code = 0; code < kDTypeCount; ++code) dtypes.push_back(static_cast<DType>(code));
  return dtypes;
}

std::vector<const Kernels*> all_tables() {
  const KernelTables available = available_kernels();
  return {available.tables, available.tables + available.count};
}

double value_of(HalfFormat format, uint16_t bits) {
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int top = (1 << format.exponent_bits) - 1;
  const int exponent = (bits >> format.mantissa_bits) & top;
  const int bias = top / 2;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == top) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign *
         std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - bias - format.mantissa_bits);
}

uint16_t nearest(HalfFormat format, double value) {
  const int top = (1 << format.exponent_bits) - 1;
  const int bias = top / 2;
  const int infinity = top << format.mantissa_bits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (format.mantissa_bits - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (value == 0) return static_cast<uint16_t>(sign);
  int exponent = 0;
  std::frexp(value, &exponent);  // value = [0.5, 1) * 2^exponent
  exponent = std::max(exponent - 1, 1 - bias);
  // In units of the last place; nearbyint rounds ties to even. Consecutive codes are consecutive
  // multiples, also across powers of two and into infinity.
  const double units =
      std::nearbyint(std::ldexp(std::fabs(value), format.mantissa_bits - exponent));
  const int code = ((exponent + bias - 1) << format.mantissa_bits) + static_cast<int>(units);
  return static_cast<uint16_t>(sign | std::min(code, infinity));
}

bool is_nan(HalfFormat format, uint16_t bits) {
  const int infinity = ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
  return (bits & 0x7fff) > infinity;
}

Bytes random_elements(DType dtype, size_t count, uint64_t seed, Values values) {
  std::mt19937_64 random(seed);
  return with_storage(dtype, [&](auto zero) {
    Bytes bytes(count * sizeof(zero));
    for (size_t i = 0; i < count; ++i) {
      const auto value = random_element<decltype(zero)>(dtype, random, values);
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    return bytes;
  });
}

Bytes reduce(DType dtype, ReduceOp op, const std::vector<Bytes>& sources, const Scale& post) {
  return with_storage(dtype, [&](auto zero) {
    Bytes result(sources[0].size());
    for (size_t i = 0; i < result.size() / sizeof(zero); ++i) {
      const auto value = reduce_one<decltype(zero)>(dtype, op, sources, i, post);
      std::memcpy(result.data() + i * sizeof(value), &value, sizeof(value));
    }
    return result;
  });
}

::testing::AssertionResult same_numbers(DType dtype, const Bytes& expected, const void* actual) {
  if (expected.empty() || std::memcmp(expected.data(), actual, expected.size()) == 0) {
    return ::testing::AssertionSuccess();
  }
  const size_t size = dtype_bytes(dtype);
  const auto* bytes = static_cast<const std::byte*>(actual);
  for (size_t i = 0; i < expected.size() / size; ++i) {
    const size_t at = i * size;
    if (std::memcmp(expected.data() + at, bytes + at, size) == 0) continue;
    if (nan_at(dtype, expected.data(), i) && nan_at(dtype, actual, i)) continue;
    unsigned long long want = 0, got = 0;
    std::memcpy(&want, expected.data() + at, size);
    std::memcpy(&got, bytes + at, size);
    return ::testing::AssertionFailure()
           << std::hex << "element 0x" << i << ": expected bits 0x" << want << ", got 0x" << got;
  }
  return ::testing::AssertionSuccess();
}

Fenced::Fenced(size_t bytes, size_t misalignment)
    : memory_(2 * kFenceBytes + misalignment + bytes, kFence),
      begin_(kFenceBytes + misalignment),
      bytes_(bytes) {}

Fenced::Fenced(const Bytes& content, size_t misalignment) : Fenced(content.size(), misalignment) {
  if (!content.empty()) std::memcpy(data(), content.data(), content.size());
}

Bytes Fenced::content() const {
  return {memory_.begin() + static_cast<std::ptrdiff_t>(begin_),
          memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_)};
}

bool Fenced::fences_intact() const {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const bool inside = i >= begin_ && i < begin_ + bytes_;
    if (!inside && memory_[i] != kFence) return false;
  }
  return true;
}

}  // namespace hvd::plain
