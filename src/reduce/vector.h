// vector.h - the vectors the kernels are written with: the compiler's own vector types.
// An instruction set is a type (`Isa`) that says how wide a vector is; see kernels_baseline.cc.
// Internal linkage throughout, for the reason given in half.h. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd {
namespace {

template <class Element, int kBytes>
struct VectorOf {
  typedef Element type __attribute__((vector_size(kBytes)));
};
template <class Isa, class Element>
using Vector = typename VectorOf<Element, Isa::kVectorBytes>::type;
// As many bytes as half a vector: what 16-bit numbers take that fill a vector of float32.
template <class Isa, class Element>
using HalfVector = typename VectorOf<Element, Isa::kVectorBytes / 2>::type;

// The unsigned integer that is as long as a number.
template <class Float>
struct WordOf;
template <>
struct WordOf<float> {
  using type = uint32_t;
};
template <>
struct WordOf<double> {
  using type = uint64_t;
};

template <class Value>
[[gnu::always_inline]] inline Value load_as(const void* address) {
  Value value;
  __builtin_memcpy(&value, address, sizeof(value));
  return value;
}
template <class Value>
[[gnu::always_inline]] inline void store_as(void* address, Value value) {
  __builtin_memcpy(address, &value, sizeof(value));
}

inline constexpr size_t kLineBytes = 64;
// How far ahead lines that another core owns are fetched: the best distance measured between two
// cores. lines.
inline constexpr size_t kFetchAheadBytes = 8 * kLineBytes;

// Asks for the line with the right to write, so that it does not have to be asked for twice.
[[gnu::always_inline]] inline void fetch_for_write(const void* address) {
  __builtin_prefetch(address, 1, 3);
}

}  // namespace
}  // namespace hvd
