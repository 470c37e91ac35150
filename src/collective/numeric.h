// numeric.h - how the elements of one reduction are carried and combined: dtype, wire type,
// factors. Slots hold elements in `slot_dtype`, already pre-scaled; a null input stands for zeros
// (a joined rank), a null output for "not wanted". Every algorithm combines all sources at once, in
// rank order: so results do not depend on the algorithm. Roundings: what a slot holds is rounded to
// `slot_dtype`, after pre-scaling; float32 and float64 round each addition, and an average once
// more, except that equal elements are their own average; 16-bit floats are added in float32 and
// rounded once, after post-scaling. Thread: any; uses a scratch block of the thread.
#pragma once

#include <cstddef>

#include "base/dtype.h"
#include "reduce/kernels.h"

namespace hvd::collective {

struct Numeric {
  DType dtype = DType::kFloat32;
  DType slot_dtype = DType::kFloat32;  // float16/bfloat16 where a wire type is asked for
  ReduceOp op = ReduceOp::kSum;
  Scale pre, post;

  size_t element_bytes() const { return dtype_bytes(dtype); }
  size_t slot_bytes() const { return dtype_bytes(slot_dtype); }
  // User elements and slot elements are the same bits.
  bool is_plain() const { return slot_dtype == dtype && pre.is_identity(); }
  // An average of numbers that have fractions. (One of integers is a sum that is divided last.)
  bool is_mean() const { return is_floating(slot_dtype) && post.divisor != 1; }
};

// slot = what a slot holds for these `count` elements of a user's buffer.
void put(const Numeric& numeric, std::byte* slot, const std::byte* in, size_t count);
// out = what a user gets for the finished elements in a slot.
void get(const Numeric& numeric, std::byte* out, const std::byte* slot, size_t count);

struct Combine {
  const std::byte* const* slots;  // one per rank, in rank order; the entry `own` is not read
  unsigned rank_count;
  unsigned own;  // whose elements come from `in`
  const std::byte* in;
  std::byte* out;
  std::byte* slot_out;  // gets the result as a slot element; may be null
  size_t count;
};
// out (and slot_out) = post(reduce over ranks).
void combine(const Numeric& numeric, const Combine& args);

}  // namespace hvd::collective
