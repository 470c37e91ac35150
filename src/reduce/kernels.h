// kernels.h - element-wise work on memory: copies, conversions, reductions.
// SIMD with run-time dispatch: `kernels()` is the best table for this machine, chosen once.
// Pure functions of their arguments; any thread. Never allocate, never block.
//
// Numbers. Sources are combined in array order (callers pass rank order), so every rank that
// reduces the same sources gets the same bits, whatever algorithm, alignment or table is used.
// 16-bit floats are accumulated in float32 and rounded once (nearest even) after post-scaling.
// Integers wrap. bool: Sum and Max are "or", Product and Min are "and"; results are 0 or 1.
// Min/Max follow: out = b < a ? b : a (min), out = a < b ? b : a (max), a being the running value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace hvd {

// x * factor / divisor. The divisor is that of an average, which must not depend on a rounded 1/n.
// Integers with factor 1 are divided as integers (towards zero), otherwise computed in float64 and
// truncated (saturating at the range of the type). float32 and float64 are divided, rounded, and
// multiplied by the factor in their own arithmetic; where all sources of a sum are equal bit for
// bit and the divisor is their number, the quotient is what they are. (Two sources are equal to
// their average as long as their sum is finite.) float16/bfloat16 are multiplied by
// float(factor / divisor) in float32, which has digits enough for the same. A quotient
// factor / divisor of exactly 1 leaves the bits alone. bool: (x * factor) != 0.
struct Scale {
  double factor = 1.0;
  int64_t divisor = 1;
  bool is_identity() const { return factor == 1.0 && divisor == 1; }
  bool operator==(const Scale&) const = default;
};

// What reduce() combines with: Sum, Min, Max or Product (Average is Sum with a divisor).
struct ReduceArgs {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  size_t count = 0;                      // elements
  const void* const* sources = nullptr;  // source_count pointers
  unsigned source_count = 0;             // >= 1
  void* const* outputs = nullptr;        // every output gets the result; each may equal a source
  unsigned output_count = 0;             // >= 1
  Scale post;
};

// When what a copy writes is read again. kLate: not before it would have left the caches anyway, so
// it passes by them, which saves reading the lines that it overwrites.
enum class Reuse { kSoon, kLate };

struct Kernels {
  const char* name;  // "avx2", "baseline"

  // Buffers may be unaligned. An output either equals a source or overlaps none.
  void (*reduce)(const ReduceArgs& args);

  // dst = x * scale in the same dtype; dst may equal src.
  void (*scale)(DType dtype, void* dst, const void* src, size_t count, const Scale& scale);

  // float32 -> 16 bit (nearest even, NaN stays NaN) and back. `scale` is applied in float32 before
  // rounding (narrow) or after widening (widen). `narrow_type` is kFloat16 or kBfloat16.
  void (*narrow)(DType narrow_type, void* dst, const float* src, size_t count, const Scale& scale);
  void (*widen)(DType narrow_type, float* dst, const void* src, size_t count, const Scale& scale);

  // Copies whose destination (to_shared) or source (from_shared) another core touched last: they
  // fetch those lines for writing some lines ahead, so that ownership moves with the data.
  void (*copy_to_shared)(void* dst, const void* src, size_t bytes);
  void (*copy_from_shared)(void* dst, const void* src, size_t bytes);

  // Copies to private memory. copy_to_both also fills `shared`, as copy_to_shared does, and reads
  // the source once. Source and destinations do not overlap.
  void (*copy)(void* dst, const void* src, size_t bytes, Reuse reuse);
  void (*copy_to_both)(void* shared, void* own, const void* src, size_t bytes, Reuse reuse);

  // out[0] = dot(a, b), out[1] = dot(a, a), out[2] = dot(b, b) in float64, in a fixed order that
  // depends only on count. dtype kFloat32 or kFloat64.
  void (*dots)(DType dtype, const void* a, const void* b, size_t count, double out[3]);
  // a = ca * a + cb * b, in the arithmetic of dtype (kFloat32: factors rounded to float32).
  void (*combine)(DType dtype, void* a, const void* b, size_t count, double ca, double cb);
};

const Kernels& kernels();           // for this machine
const Kernels& baseline_kernels();  // runs everywhere; the reference for tests
// Every table that this machine can run, best first, ending with the baseline.
struct KernelTables {
  const Kernels* tables[4];
  int count;
};
KernelTables available_kernels();

}  // namespace hvd
