#include "collective/adasum.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <iterator>

#include "collective/shares.h"

namespace hvd::collective {

std::vector<AdasumLevel> adasum_levels(int ranks) {
  int power = 1;
  while (power * 2 <= ranks) power *= 2;
  std::vector<AdasumLevel> levels;
  AdasumLevel fold;
  for (int rank = power; rank < ranks; ++rank) fold.emplace_back(rank - power, rank);
  if (!fold.empty()) levels.push_back(fold);
  for (int distance = 1; distance < power; distance *= 2) {
    AdasumLevel level;
    for (int left = 0; left < power; left += 2 * distance)
      level.emplace_back(left, left + distance);
    levels.push_back(level);
  }
  return levels;
}

AdasumWeights adasum_weights(const double dots[3]) {
  // Below this a norm counts as zero: the vector is taken as it is.
  static const double kTiny = std::sqrt(DBL_MIN);
  return {dots[1] < kTiny ? 1.0 : 1.0 - dots[0] / (2.0 * dots[1]),
          dots[2] < kTiny ? 1.0 : 1.0 - dots[0] / (2.0 * dots[2])};
}

DType adasum_work_dtype(DType dtype) {
  return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

namespace {

// A 16-bit tensor that is pre-scaled is one again before anything is done with it.
void load_scaled(const Numeric& n, float* work, const std::byte* in, size_t count) {
  uint16_t scaled[1024];
  for (size_t at = 0; at < count; at += std::size(scaled)) {
    const size_t here = std::min(std::size(scaled), count - at);
    kernels().scale(n.dtype, scaled, in + at * sizeof(uint16_t), here, n.pre);
    kernels().widen(n.dtype, work + at, scaled, here, Scale{});
  }
}

}  // namespace

void adasum_load(const Numeric& n, std::byte* work, const std::byte* in, size_t count) {
  const DType work_dtype = adasum_work_dtype(n.dtype);
  auto* floats = reinterpret_cast<float*>(work);
  if (in == nullptr) {
    std::memset(work, 0, count * dtype_bytes(work_dtype));
  } else if (n.dtype == work_dtype) {
    kernels().scale(n.dtype, work, in, count, n.pre);
  } else if (n.pre.is_identity()) {
    kernels().widen(n.dtype, floats, in, count, Scale{});
  } else {
    load_scaled(n, floats, in, count);
  }
}

void adasum_store(const Numeric& n, std::byte* out, const std::byte* work, size_t count) {
  if (out == nullptr) return;
  if (n.dtype != adasum_work_dtype(n.dtype)) {
    kernels().narrow(n.dtype, out, reinterpret_cast<const float*>(work), count, n.post);
  } else {
    kernels().scale(n.dtype, out, work, count, n.post);
  }
}

void adasum_locally(DType work_dtype, const std::vector<std::byte*>& vectors, size_t count) {
  for (const AdasumLevel& level : adasum_levels(static_cast<int>(vectors.size()))) {
    for (const auto& [left, right] : level) {
      std::byte* a = vectors[static_cast<size_t>(left)];
      const std::byte* b = vectors[static_cast<size_t>(right)];
      // Slice by slice, as the large path sums what each rank computed: the same bits whatever path
      // a tensor takes.
      double dots[3] = {0, 0, 0};
      const auto ranks = static_cast<int>(vectors.size());
      const size_t bytes = dtype_bytes(work_dtype);
      for (int rank = 0; rank < ranks; ++rank) {
        const uint64_t low = share_begin(count, bytes, ranks, rank),
                       high = share_begin(count, bytes, ranks, rank + 1);
        double part[3];
        kernels().dots(work_dtype, a + low * bytes, b + low * bytes, high - low, part);
        for (int i = 0; i < 3; ++i) dots[i] += part[i];
      }
      const AdasumWeights weights = adasum_weights(dots);
      kernels().combine(work_dtype, a, b, count, weights.left, weights.right);
    }
  }
}

}  // namespace hvd::collective
