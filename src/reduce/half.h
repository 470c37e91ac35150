// half.h - float16 and bfloat16 <-> float32, nearest even; NaN stays NaN (quiet, top payload kept).
// Pure; any thread. The same formulas serve one number and a whole vector of them, so that both
// give the same bits, and the bits of the F16C instructions.
//
// Everything here has internal linkage: files compiled for different instruction sets include it,
// and the linker must not replace one set's code by another's.
#pragma once

#include <cstdint>

namespace hvd {
namespace {

// The integer types that go with a float or with a vector of floats.
template <class Float>
struct LanesOf {
  typedef uint32_t Unsigned __attribute__((vector_size(sizeof(Float))));
  typedef int32_t Signed __attribute__((vector_size(sizeof(Float))));
};
template <>
struct LanesOf<float> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
};

template <class To, class From>
[[gnu::always_inline]] inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

// `half` holds the 16 bits in the low end of each 32-bit lane.
template <class Float>
[[gnu::always_inline]] inline Float widen_float16(typename LanesOf<Float>::Unsigned half) {
  using Unsigned = typename LanesOf<Float>::Unsigned;
  using Signed = typename LanesOf<Float>::Signed;
  const Unsigned sign = (half & 0x8000u) << 16;
  const Unsigned shifted = (half & 0x7fffu) << 13;  // exponent and mantissa, still biased by 15

  const Unsigned normal = shifted + (112u << 23);
  // A subnormal is 2^-14 * 0.m: build 2^-14 * 1.m and take the 1 away; no operand is a float32
  // subnormal, so a process that flushes those to zero gets the same result.
  const Unsigned two_to_minus_14 = Unsigned{} + (113u << 23);
  const Unsigned subnormal = same_bits<Unsigned>(same_bits<Float>(shifted + two_to_minus_14) -
                                                 same_bits<Float>(two_to_minus_14));
  const Unsigned infinite = shifted | 0x7f800000u;

  const Signed s_shifted = same_bits<Signed>(shifted);
  Unsigned bits = s_shifted < 0x00800000 ? subnormal : normal;
  bits = s_shifted >= 0x0f800000 ? infinite : bits;
  bits = s_shifted > 0x0f800000 ? bits | 0x00400000u : bits;
  return same_bits<Float>(bits | sign);
}

template <class Float>
[[gnu::always_inline]] inline typename LanesOf<Float>::Unsigned narrow_float16(Float value) {
  using Unsigned = typename LanesOf<Float>::Unsigned;
  using Signed = typename LanesOf<Float>::Signed;
  const Unsigned bits = same_bits<Unsigned>(value);
  const Unsigned sign = bits & 0x80000000u;
  const Unsigned magnitude = bits ^ sign;

  // Rebias the exponent by 15 - 127 and round at bit 13; a carry out of the mantissa is correct.
  const Unsigned odd = (magnitude >> 13) & 1u;
  const Unsigned normal = (magnitude + odd + 0xc8000fffu) >> 13;
  // Adding 0.5 puts the unit of a subnormal (2^-24) at the last bit: the adder rounds.
  const Unsigned half_bits = Unsigned{} + 0x3f000000u;
  const Unsigned subnormal =
      same_bits<Unsigned>(same_bits<Float>(magnitude) + same_bits<Float>(half_bits)) - half_bits;
  const Unsigned nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;

  const Signed s_magnitude = same_bits<Signed>(magnitude);
  Unsigned half = s_magnitude < 0x38800000 ? subnormal : normal;   // below 2^-14
  half = s_magnitude >= 0x47800000 ? Unsigned{} + 0x7c00u : half;  // 2^16 and above
  half = s_magnitude > 0x7f800000 ? nan : half;
  return half | (sign >> 16);
}

template <class Float>
[[gnu::always_inline]] inline Float widen_bfloat16(typename LanesOf<Float>::Unsigned half) {
  return same_bits<Float>(half << 16);
}

// The result stands in the upper 16 bits of each lane; the lower ones are left over from rounding.
template <class Float>
[[gnu::always_inline]] inline typename LanesOf<Float>::Unsigned round_to_bfloat16(Float value) {
  using Unsigned = typename LanesOf<Float>::Unsigned;
  const Unsigned bits = same_bits<Unsigned>(value);
  const Unsigned rounded = bits + (((bits >> 16) & 1u) + 0x7fffu);
  return value != value ? bits | 0x00400000u : rounded;
}

template <class Float>
[[gnu::always_inline]] inline typename LanesOf<Float>::Unsigned narrow_bfloat16(Float value) {
  return round_to_bfloat16(value) >> 16;
}

[[maybe_unused]] inline float float16_to_float(uint16_t half) { return widen_float16<float>(half); }
[[maybe_unused]] inline uint16_t float_to_float16(float value) {
  return static_cast<uint16_t>(narrow_float16(value));
}
[[maybe_unused]] inline float bfloat16_to_float(uint16_t half) {
  return widen_bfloat16<float>(half);
}
[[maybe_unused]] inline uint16_t float_to_bfloat16(float value) {
  return static_cast<uint16_t>(narrow_bfloat16(value));
}

}  // namespace
}  // namespace hvd
