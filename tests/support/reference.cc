#include "tests/support/reference.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>

namespace hvd::testing {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

float bits_to_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
uint32_t float_to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// By the definition of binary16, with library arithmetic only: slow and easy to check.
float half_to_float(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int fraction = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * HUGE_VALF;
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}
uint16_t float_to_half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0.0) return sign;
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int unit = std::max(exponent - 11, -24);  // exponent of the last place
  const auto places = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  const uint32_t bits = (static_cast<uint32_t>(unit + 24) << 10) + places;
  return static_cast<uint16_t>(sign | bits);
}

float bfloat_to_float(uint16_t value) { return bits_to_float(uint32_t{value} << 16); }
uint16_t float_to_bfloat(float value) {
  const uint32_t bits = float_to_bits(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
struct Bool {
  uint8_t value;
};

template <typename T>
T load(const Bytes& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(Bytes& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

// What each type is computed in.
template <typename T>
struct Arithmetic {
  using Wide = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};
template <>
struct Arithmetic<Half> {
  using Wide = float;
  static float widen(Half value) { return half_to_float(value.bits); }
  static Half narrow(float value) { return {float_to_half(value)}; }
};
template <>
struct Arithmetic<Bfloat> {
  using Wide = float;
  static float widen(Bfloat value) { return bfloat_to_float(value.bits); }
  static Bfloat narrow(float value) { return {float_to_bfloat(value)}; }
};
template <>
struct Arithmetic<Bool> {
  using Wide = bool;
  static bool widen(Bool value) { return value.value != 0; }
  static Bool narrow(bool value) { return {static_cast<uint8_t>(value ? 1 : 0)}; }
};

template <typename Function>
decltype(auto) with_type(hvd_dtype dtype, Function&& function) {
  switch (dtype) {
    case HVD_UINT8:
      return function(uint8_t{});
    case HVD_INT8:
      return function(int8_t{});
    case HVD_UINT16:
      return function(uint16_t{});
    case HVD_INT16:
      return function(int16_t{});
    case HVD_INT32:
      return function(int32_t{});
    case HVD_INT64:
      return function(int64_t{});
    case HVD_FLOAT16:
      return function(Half{});
    case HVD_FLOAT64:
      return function(double{});
    case HVD_BOOL:
      return function(Bool{});
    case HVD_BFLOAT16:
      return function(Bfloat{});
    case HVD_FLOAT32:
    default:
      return function(float{});
  }
}

template <typename Wide>
Wide saturate(double value) {
  if (value >= static_cast<double>(std::numeric_limits<Wide>::max())) {
    return std::numeric_limits<Wide>::max();
  }
  if (value <= static_cast<double>(std::numeric_limits<Wide>::min())) {
    return std::numeric_limits<Wide>::min();
  }
  return static_cast<Wide>(value);
}

template <typename Wide>
Wide scaled(Wide value, double factor, int64_t divisor) {
  if (factor == 1.0 && divisor == 1) return value;
  if constexpr (std::is_same_v<Wide, bool>) {
    return value && factor != 0.0;
  } else if constexpr (std::is_floating_point_v<Wide>) {
    if (factor == static_cast<double>(divisor)) return value;
    return value / static_cast<Wide>(divisor) * static_cast<Wide>(factor);
  } else {
    if (factor == 1.0) return static_cast<Wide>(value / static_cast<int64_t>(divisor));
    return saturate<Wide>(static_cast<double>(value) * factor / static_cast<double>(divisor));
  }
}

template <typename Wide>
Wide combined(hvd_reduce_op op, Wide a, Wide b) {
  if (op == HVD_OP_MIN) return b < a ? b : a;
  if (op == HVD_OP_MAX) return a < b ? b : a;
  if constexpr (std::is_same_v<Wide, bool>) {
    return op == HVD_OP_PRODUCT ? (a && b) : (a || b);
  } else if constexpr (std::is_integral_v<Wide>) {
    const auto ua = static_cast<uint64_t>(a);  // wraps, without the undefined overflow of int
    const auto ub = static_cast<uint64_t>(b);
    return static_cast<Wide>(op == HVD_OP_PRODUCT ? ua * ub : ua + ub);
  } else {
    return op == HVD_OP_PRODUCT ? a * b : a + b;
  }
}

// A(a, b) of Adasum into a; dots in float64, the rest in the type's arithmetic.
template <typename Wide>
void adasum_pair(std::vector<Wide>& a, const std::vector<Wide>& b) {
  double dot = 0, a_norm = 0, b_norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]);
    const double y = static_cast<double>(b[i]);
    dot += x * y;
    a_norm += x * x;
    b_norm += y * y;
  }
  const double tiny = std::sqrt(DBL_MIN);
  const double a_factor = a_norm < tiny ? 1.0 : 1.0 - dot / (2 * a_norm);
  const double b_factor = b_norm < tiny ? 1.0 : 1.0 - dot / (2 * b_norm);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<Wide>(a_factor) * a[i] + static_cast<Wide>(b_factor) * b[i];
  }
}

// Ranks beyond the largest power of two fold into the first ones; then distance doubling.
template <typename Wide>
std::vector<Wide> adasum_of(std::vector<std::vector<Wide>> ranks) {
  size_t power = 1;
  while (power * 2 <= ranks.size()) power *= 2;
  for (size_t r = power; r < ranks.size(); ++r) adasum_pair(ranks[r - power], ranks[r]);
  for (size_t distance = 1; distance < power; distance *= 2) {
    for (size_t r = 0; r < power; r += 2 * distance) adasum_pair(ranks[r], ranks[r + distance]);
  }
  return ranks[0];
}

template <typename T>
Bytes adasum_typed(const ReduceSpec& spec, const std::vector<Bytes>& inputs) {
  using A = Arithmetic<T>;
  using Wide = typename A::Wide;
  Bytes result(inputs[0].size());
  if constexpr (std::is_floating_point_v<Wide>) {
    std::vector<std::vector<Wide>> ranks;
    for (const Bytes& input : inputs) {
      auto& values = ranks.emplace_back(input.size() / sizeof(T));
      for (size_t i = 0; i < values.size(); ++i) {
        const auto value = A::widen(load<T>(input, i));
        values[i] = A::widen(A::narrow(scaled(value, spec.prescale, 1)));
      }
    }
    const auto values = adasum_of(std::move(ranks));
    for (size_t i = 0; i < values.size(); ++i) {
      store<T>(result, i, A::narrow(scaled(values[i], spec.postscale, 1)));
    }
  } else {
    ADD_FAILURE() << "Adasum of " << dtype_text(spec.dtype) << " has no meaning";
  }
  return result;
}

// What the ranks' elements become. Equal float32 or float64 are their own average; 16-bit floats
// are multiplied in float32, which leaves equal ones as they are by itself.
template <typename T, typename Wide>
Wide finished(const ReduceSpec& spec, Wide result, const std::vector<T>& elements) {
  const auto size = static_cast<int64_t>(elements.size());
  if (spec.op != HVD_OP_AVERAGE) return scaled(result, spec.postscale, 1);
  if constexpr (std::is_floating_point_v<T>) {
    const auto differs = [&](T element) { return element != elements[0]; };
    if (spec.postscale != static_cast<double>(size) &&
        std::none_of(elements.begin(), elements.end(), differs))
      return scaled(elements[0], spec.postscale, 1);
    return scaled(result, spec.postscale, size);
  } else if constexpr (std::is_floating_point_v<Wide>) {
    return scaled(result, spec.postscale / static_cast<double>(size), 1);
  } else {
    return scaled(result, spec.postscale, size);
  }
}

template <typename T>
Bytes allreduce_typed(const ReduceSpec& spec, const std::vector<Bytes>& inputs) {
  using A = Arithmetic<T>;
  Bytes result(inputs[0].size());
  std::vector<T> elements(inputs.size());
  for (size_t i = 0; i < result.size() / sizeof(T); ++i) {
    for (size_t r = 0; r < inputs.size(); ++r) {
      // Pre-scaled values are stored in the type again before they are reduced.
      const auto value = A::widen(load<T>(inputs[r], i));
      elements[r] = A::narrow(scaled(value, spec.prescale, 1));
    }
    auto sum = A::widen(elements[0]);
    for (size_t r = 1; r < elements.size(); ++r)
      sum = combined(spec.op, sum, A::widen(elements[r]));
    store<T>(result, i, A::narrow(finished<T>(spec, sum, elements)));
  }
  return result;
}

}  // namespace

size_t element_bytes(hvd_dtype dtype) {
  return with_type(dtype, [](auto type) { return sizeof(type); });
}

const char* dtype_text(hvd_dtype dtype) {
  static const char* const kTexts[] = {"uint8",   "int8",    "uint16",  "int16", "int32",   "int64",
                                       "float16", "float32", "float64", "bool",  "bfloat16"};
  return kTexts[dtype];
}

Bytes make_data(const DataSpec& spec) {
  Bytes data(spec.count * element_bytes(spec.dtype));
  const uint64_t seed = mix(mix(spec.salt * 31 + static_cast<uint64_t>(spec.rank)) + spec.dtype);
  with_type(spec.dtype, [&](auto type) {
    using T = decltype(type);
    using A = Arithmetic<T>;
    for (size_t i = 0; i < spec.count; ++i) {
      const uint64_t random = mix(seed + i);
      if constexpr (std::is_same_v<T, Bool>) {
        store<T>(data, i, {static_cast<uint8_t>(random & 1)});
      } else if constexpr (std::is_integral_v<T>) {
        const int64_t range = sizeof(T) == 1 ? 15 : sizeof(T) == 2 ? 3000 : 100000000;
        const int64_t value = static_cast<int64_t>(random % static_cast<uint64_t>(range + 1));
        const bool negative = std::is_signed_v<T> && (random >> 63) != 0;
        store<T>(data, i, static_cast<T>(negative ? -value : value));
      } else {
        const double unit = static_cast<double>(random >> 11) * 0x1p-53;
        store<T>(data, i, A::narrow(static_cast<typename A::Wide>(4.0 * unit - 2.0)));
      }
    }
  });
  return data;
}

std::vector<Bytes> make_data_of_all(int size, DataSpec spec) {
  std::vector<Bytes> all;
  for (spec.rank = 0; spec.rank < size; ++spec.rank) all.push_back(make_data(spec));
  return all;
}

Bytes reference_allreduce(const ReduceSpec& spec, const std::vector<Bytes>& inputs) {
  return with_type(spec.dtype, [&](auto type) {
    using T = decltype(type);
    return spec.op == HVD_OP_ADASUM ? adasum_typed<T>(spec, inputs)
                                    : allreduce_typed<T>(spec, inputs);
  });
}

Bytes reference_allgather(const std::vector<Bytes>& inputs) {
  Bytes result;
  for (const Bytes& input : inputs) result.insert(result.end(), input.begin(), input.end());
  return result;
}

std::vector<int64_t> reference_scatter_rows(int64_t rows, int size) {
  std::vector<int64_t> result(static_cast<size_t>(size), rows / size);
  for (int64_t r = 0; r < rows % size; ++r) ++result[static_cast<size_t>(r)];
  return result;
}

Bytes reference_reducescatter(const ScatterSpec& spec, const std::vector<Bytes>& inputs) {
  const Bytes whole = reference_allreduce(spec.reduce, inputs);
  const auto rows = reference_scatter_rows(spec.rows, static_cast<int>(inputs.size()));
  const size_t row_bytes = spec.row_elements * element_bytes(spec.reduce.dtype);
  size_t first = 0;
  for (int r = 0; r < spec.receiver; ++r) {
    first += static_cast<size_t>(rows[static_cast<size_t>(r)]) * row_bytes;
  }
  const size_t bytes = static_cast<size_t>(rows[static_cast<size_t>(spec.receiver)]) * row_bytes;
  return Bytes(whole.begin() + static_cast<std::ptrdiff_t>(first),
               whole.begin() + static_cast<std::ptrdiff_t>(first + bytes));
}

Bytes reference_alltoall(const std::vector<Bytes>& inputs,
                         const std::vector<std::vector<int32_t>>& splits, size_t row_bytes,
                         int receiver) {
  Bytes result;
  const auto to = static_cast<size_t>(receiver);
  for (size_t from = 0; from < inputs.size(); ++from) {
    size_t first = 0;
    for (size_t j = 0; j < to; ++j) first += static_cast<size_t>(splits[from][j]) * row_bytes;
    const size_t bytes = static_cast<size_t>(splits[from][to]) * row_bytes;
    const auto begin = inputs[from].begin() + static_cast<std::ptrdiff_t>(first);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
  }
  return result;
}

double element_at(hvd_dtype dtype, const Bytes& values, size_t index) {
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    return static_cast<double>(Arithmetic<T>::widen(load<T>(values, index)));
  });
}

namespace {

template <typename Equal>
::testing::AssertionResult compare(hvd_dtype dtype, const Bytes& expected, const Bytes& actual,
                                   Equal&& equal) {
  if (expected.size() != actual.size()) {
    return ::testing::AssertionFailure()
           << "expected " << expected.size() << " bytes, got " << actual.size();
  }
  const size_t count = expected.size() / element_bytes(dtype);
  size_t wrong = 0;
  std::ostringstream first;
  first.precision(17);
  for (size_t i = 0; i < count; ++i) {
    if (equal(i)) continue;
    if (wrong++ == 0) {
      first << "element " << i << ": expected " << element_at(dtype, expected, i) << ", got "
            << element_at(dtype, actual, i);
    }
  }
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << wrong << " of " << count << " " << dtype_text(dtype)
                                       << " elements differ; " << first.str();
}

}  // namespace

::testing::AssertionResult same_bits(hvd_dtype dtype, const Bytes& expected, const Bytes& actual) {
  if (expected == actual) return ::testing::AssertionSuccess();
  const size_t bytes = element_bytes(dtype);
  return compare(dtype, expected, actual, [&](size_t i) {
    return std::memcmp(expected.data() + i * bytes, actual.data() + i * bytes, bytes) == 0;
  });
}

::testing::AssertionResult close_to(hvd_dtype dtype, const Bytes& expected, const Bytes& actual,
                                    double tolerance) {
  return compare(dtype, expected, actual, [&](size_t i) {
    const double want = element_at(dtype, expected, i);
    return std::fabs(element_at(dtype, actual, i) - want) <=
           tolerance * std::max(1.0, std::fabs(want));
  });
}

}  // namespace hvd::testing
