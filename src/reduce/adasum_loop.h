// adasum_loop.h - dot products and the weighted sum of two vectors, as Adasum needs them.
// Internal linkage (see half.h). Pure; any thread.
#pragma once

#include <cfloat>

#include "reduce/vector.h"

namespace hvd {
namespace {

// Element i goes to partial sum i mod 8, whatever the width of a vector, and the partial sums are
// added in one order: the result depends on nothing but the numbers.
inline constexpr size_t kPartialSums = 8;

template <class Isa>
struct PartialSums {
  static constexpr size_t kLanes = Isa::kVectorBytes / sizeof(double);
  static constexpr size_t kVectors = kPartialSums / kLanes;
  Vector<Isa, double> vectors[kVectors] = {};

  void add_product(size_t v, Vector<Isa, double> x, Vector<Isa, double> y) { vectors[v] += x * y; }
  void spill(double* sums) const { __builtin_memcpy(sums, vectors, sizeof(vectors)); }
};

[[maybe_unused]] inline double add_in_order(const double* sums) {
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class Isa, class Float>
void dots_loop(const char* a, const char* b, size_t count, double out[3]) {
  using Partial = PartialSums<Isa>;
  using Doubles = Vector<Isa, double>;
  using Lanes = typename VectorOf<Float, Partial::kLanes * sizeof(Float)>::type;
  Partial ab, aa, bb;
  const size_t whole = count - count % kPartialSums;
  for (size_t i = 0; i < whole; i += kPartialSums) {
    for (size_t v = 0; v < Partial::kVectors; ++v) {
      const size_t at = (i + v * Partial::kLanes) * sizeof(Float);
      const Doubles x = __builtin_convertvector(load_as<Lanes>(a + at), Doubles);
      const Doubles y = __builtin_convertvector(load_as<Lanes>(b + at), Doubles);
      ab.add_product(v, x, y);
      aa.add_product(v, x, x);
      bb.add_product(v, y, y);
    }
  }
  double sums[3][kPartialSums];
  ab.spill(sums[0]);
  aa.spill(sums[1]);
  bb.spill(sums[2]);
  for (size_t i = whole; i < count; ++i) {
    const double x = load_as<Float>(a + i * sizeof(Float));
    const double y = load_as<Float>(b + i * sizeof(Float));
    sums[0][i - whole] += x * y;
    sums[1][i - whole] += x * x;
    sums[2][i - whole] += y * y;
  }
  for (int s = 0; s < 3; ++s) out[s] = add_in_order(sums[s]);
}

template <class Isa, class Float>
void combine_loop(char* a, const char* b, size_t count, Float ca, Float cb) {
  using Lanes = Vector<Isa, Float>;
  constexpr size_t kLanes = Isa::kVectorBytes / sizeof(Float);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const size_t at = i * sizeof(Float);
    store_as(a + at, load_as<Lanes>(a + at) * ca + load_as<Lanes>(b + at) * cb);
  }
  for (; i < count; ++i) {
    const size_t at = i * sizeof(Float);
    store_as(a + at, load_as<Float>(a + at) * ca + load_as<Float>(b + at) * cb);
  }
}

[[maybe_unused]] inline bool fits_float(double weight) { return __builtin_fabs(weight) <= FLT_MAX; }

// float32 vectors whose lengths differ so much that a weight exceeds float32, the result does not.
[[maybe_unused]] inline void combine_widely(char* a, const char* b, size_t count, double ca,
                                            double cb) {
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * sizeof(float);
    const double x = load_as<float>(a + at), y = load_as<float>(b + at);
    store_as(a + at, static_cast<float>(x * ca + y * cb));
  }
}

}  // namespace
}  // namespace hvd
