// kernel_table.h - puts the loops together into the Kernels of one instruction set.
// Included by one .cc per instruction set, each compiled with its own flags. Everything has
// internal linkage (see half.h): the only symbol such a file may export is its table.
#pragma once

#include "reduce/adasum_loop.h"
#include "reduce/combine_ops.h"
#include "reduce/convert_loop.h"
#include "reduce/copy_loop.h"
#include "reduce/kernels.h"
#include "reduce/reduce_loop.h"

namespace hvd {
namespace {

using ReduceFunction = void (*)(const ReduceArgs&);

// Average and Adasum are made of other operations; adding up instead would give wrong gradients.
[[noreturn, maybe_unused]] inline void refuse(const ReduceArgs&) { __builtin_trap(); }

struct OpRow {
  ReduceFunction by_op[kReduceOpCount];
};

// In the order of ReduceOp: Average, Sum, Adasum, Min, Max, Product.
template <class Format>
constexpr OpRow integer_row() {
  return {{refuse, reduce_entry<Format, Sum>, refuse, reduce_entry<Format, Min>,
           reduce_entry<Format, Max>, reduce_entry<Format, Product>}};
}
template <class Format>
constexpr OpRow float_row() {
  return {{refuse, reduce_hot_entry<Format, Sum>, refuse, reduce_entry<Format, Min>,
           reduce_entry<Format, Max>, reduce_entry<Format, Product>}};
}
template <class Format>
constexpr OpRow float32_row() {
  return {{refuse, reduce_hottest_entry<Format, Sum>, refuse, reduce_entry<Format, Min>,
           reduce_entry<Format, Max>, reduce_entry<Format, Product>}};
}
template <class Format>
constexpr OpRow bool_row() {
  return {{refuse, reduce_entry<Format, Or>, refuse, reduce_entry<Format, And>,
           reduce_entry<Format, Or>, reduce_entry<Format, And>}};
}

// In the order of DType.
template <class Isa>
constexpr OpRow kReduceTable[kDTypeCount] = {
    integer_row<IntegerFormat<Isa, uint8_t>>(),
    integer_row<IntegerFormat<Isa, int8_t>>(),
    integer_row<IntegerFormat<Isa, uint16_t>>(),
    integer_row<IntegerFormat<Isa, int16_t>>(),
    integer_row<IntegerFormat<Isa, int32_t>>(),
    integer_row<IntegerFormat<Isa, int64_t>>(),
    float_row<Float16Format<Isa>>(),
    float32_row<FloatFormat<Isa, float>>(),
    float_row<FloatFormat<Isa, double>>(),
    bool_row<BoolFormat<Isa>>(),
    float_row<Bfloat16Format<Isa>>(),
};

template <class Isa>
void reduce(const ReduceArgs& args) {
  kReduceTable<Isa>[static_cast<int>(args.dtype)].by_op[static_cast<int>(args.op)](args);
}

// A reduction of one source.
template <class Isa>
void scale(DType dtype, void* dst, const void* src, size_t count, const Scale& scale) {
  // Every member is named, so that no constructor is needed: one would be shared between tables.
  const ReduceArgs args = {.dtype = dtype,
                           .op = ReduceOp::kSum,
                           .count = count,
                           .sources = &src,
                           .source_count = 1,
                           .outputs = &dst,
                           .output_count = 1,
                           .post = scale};
  reduce<Isa>(args);
}

template <class Isa>
void narrow(DType narrow_type, void* dst, const float* src, size_t count, const Scale& scale) {
  const float quotient = FloatPost<float>(scale).quotient;
  if (narrow_type == DType::kFloat16) {
    narrow_all<Isa, Float16Halves<Isa>>(dst, src, count, quotient);
  } else {
    narrow_all<Isa, Bfloat16Halves<Isa>>(dst, src, count, quotient);
  }
}

template <class Isa>
void widen(DType narrow_type, float* dst, const void* src, size_t count, const Scale& scale) {
  const float quotient = FloatPost<float>(scale).quotient;
  if (narrow_type == DType::kFloat16) {
    widen_all<Isa, Float16Halves<Isa>>(dst, src, count, quotient);
  } else {
    widen_all<Isa, Bfloat16Halves<Isa>>(dst, src, count, quotient);
  }
}

template <class Isa>
void copy_to_shared(void* dst, const void* src, size_t bytes) {
  char* to = static_cast<char*>(dst);
  copy_shared<Isa>(to, static_cast<const char*>(src), to, bytes);
}

template <class Isa>
void copy_from_shared(void* dst, const void* src, size_t bytes) {
  const char* from = static_cast<const char*>(src);
  copy_shared<Isa>(static_cast<char*>(dst), from, from, bytes);
}

template <class Isa>
void copy(void* dst, const void* src, size_t bytes, Reuse reuse) {
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(src);
  if (reuse == Reuse::kSoon) return copy_private<Isa, Reuse::kSoon>(to, from, bytes);
  copy_private<Isa, Reuse::kLate>(to, from, bytes);
}

template <class Isa>
void copy_to_both(void* shared, void* own, const void* src, size_t bytes, Reuse reuse) {
  char* to = static_cast<char*>(shared);
  char* also_to = static_cast<char*>(own);
  const char* from = static_cast<const char*>(src);
  if (reuse == Reuse::kSoon) return copy_both<Isa, Reuse::kSoon>(to, also_to, from, bytes);
  copy_both<Isa, Reuse::kLate>(to, also_to, from, bytes);
}

template <class Isa>
void dots(DType dtype, const void* a, const void* b, size_t count, double out[3]) {
  const char* x = static_cast<const char*>(a);
  const char* y = static_cast<const char*>(b);
  if (dtype == DType::kFloat32) return dots_loop<Isa, float>(x, y, count, out);
  dots_loop<Isa, double>(x, y, count, out);
}

template <class Isa>
void combine(DType dtype, void* a, const void* b, size_t count, double ca, double cb) {
  char* x = static_cast<char*>(a);
  const char* y = static_cast<const char*>(b);
  if (dtype == DType::kFloat32) {
    if (!fits_float(ca) || !fits_float(cb)) return combine_widely(x, y, count, ca, cb);
    return combine_loop<Isa, float>(x, y, count, static_cast<float>(ca), static_cast<float>(cb));
  }
  combine_loop<Isa, double>(x, y, count, ca, cb);
}

template <class Isa>
constexpr Kernels make_kernels() {
  return {.name = Isa::kName,
          .reduce = reduce<Isa>,
          .scale = scale<Isa>,
          .narrow = narrow<Isa>,
          .widen = widen<Isa>,
          .copy_to_shared = copy_to_shared<Isa>,
          .copy_from_shared = copy_from_shared<Isa>,
          .copy = copy<Isa>,
          .copy_to_both = copy_to_both<Isa>,
          .dots = dots<Isa>,
          .combine = combine<Isa>};
}

}  // namespace
}  // namespace hvd
