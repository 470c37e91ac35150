// adasum.h - the Adasum rule: which vectors meet, and with what weights.
// A(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b. Vectors meet in levels: with k =
// floor(log2 n), rank r >= 2^k first folds into r - 2^k; then partners at distance 1, 2, 4, ...
// among the first 2^k. Pure.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "collective/numeric.h"

namespace hvd::collective {

using AdasumLevel = std::vector<std::pair<int, int>>;  // (left, right): the result replaces left
std::vector<AdasumLevel> adasum_levels(int ranks);

struct AdasumWeights {
  double left, right;
};
// dots = {a.b, a.a, b.b}
AdasumWeights adasum_weights(const double dots[3]);

// Intermediate vectors are float32, or float64 for float64 tensors.
DType adasum_work_dtype(DType dtype);
// work = pre(in) in the work dtype; null in: zeros.
void adasum_load(const Numeric& numeric, std::byte* work, const std::byte* in, size_t count);
// out = post(work) in the tensor's dtype; null out: dropped.
void adasum_store(const Numeric& numeric, std::byte* out, const std::byte* work, size_t count);

// All vectors at hand (small tensors): vectors[0] ends as the result.
void adasum_locally(DType work_dtype, const std::vector<std::byte*>& vectors, size_t count);

}  // namespace hvd::collective
