// kernel_arithmetic.h - what our kernels compute, element by element, with the formulas of
// reduce/: the same source is compiled for GPUs (kernels.cu), for the host's tests and for the
// stand-in of the driver. Internal linkage (see reduce/half.h). Pure; any thread.
#pragma once

#include <cstdint>

#include "reduce/half.h"
#include "reduce/post_scale.h"

namespace hvd::collective::gpu {

// One stretch of memory of a launch. `in` may equal `out` where elements keep their size.
struct Segment {
  const void* in = nullptr;
  void* out = nullptr;
  uint64_t count = 0;  // elements
};
// Of one launch; travels by value, and parameters of a kernel have 4 KiB at most.
inline constexpr int kMostSegments = 128;
struct Batch {
  Segment segments[kMostSegments];
};
static_assert(sizeof(Batch) + sizeof(Scale) <= 4096);

namespace {

struct CopyOf {
  explicit CopyOf(const Scale&) {}
};
template <class Word>
struct Copy : CopyOf {
  using In = Word;
  using Out = Word;
  using CopyOf::CopyOf;
  [[gnu::always_inline]] Word apply(Word value) const { return value; }
};

template <class Integer>
struct ScaleInteger : IntegerPost<Integer> {
  using In = Integer;
  using Out = Integer;
  using IntegerPost<Integer>::IntegerPost;
};

// Divided, rounded, multiplied; see Scale. A power of two divides like its inverse.
template <class Float>
struct ScaleFloat {
  using In = Float;
  using Out = Float;
  Float divisor, factor;
  explicit ScaleFloat(const Scale& scale)
      : divisor(static_cast<Float>(scale.divisor)), factor(static_cast<Float>(scale.factor)) {}
  [[gnu::always_inline]] Float apply(Float value) const { return value / divisor * factor; }
};

struct Float16Bits {
  [[gnu::always_inline]] static float widen(uint16_t half) { return widen_float16<float>(half); }
  [[gnu::always_inline]] static uint16_t narrow(float value) {
    return static_cast<uint16_t>(narrow_float16<float>(value));
  }
};
struct Bfloat16Bits {
  [[gnu::always_inline]] static float widen(uint16_t half) { return widen_bfloat16<float>(half); }
  [[gnu::always_inline]] static uint16_t narrow(float value) {
    return static_cast<uint16_t>(narrow_bfloat16<float>(value));
  }
};

template <class Bits>
struct Narrow : FloatPost<float> {
  using In = float;
  using Out = uint16_t;
  using FloatPost<float>::FloatPost;
  [[gnu::always_inline]] uint16_t apply(float value) const {
    return Bits::narrow(value * quotient);
  }
};
template <class Bits>
struct Widen : FloatPost<float> {
  using In = uint16_t;
  using Out = float;
  using FloatPost<float>::FloatPost;
  [[gnu::always_inline]] float apply(uint16_t half) const { return Bits::widen(half) * quotient; }
};
template <class Bits>
struct ScaleHalf : FloatPost<float> {
  using In = uint16_t;
  using Out = uint16_t;
  using FloatPost<float>::FloatPost;
  [[gnu::always_inline]] uint16_t apply(uint16_t half) const {
    return quotient == 1.0f ? half : Bits::narrow(Bits::widen(half) * quotient);
  }
};

// Every `step`-th element from `first` on.
template <class Kernel>
[[gnu::always_inline]] inline void run_segment(const Kernel& kernel, const Segment& segment,
                                               uint64_t first, uint64_t step) {
  const auto* in = static_cast<const typename Kernel::In*>(segment.in);
  auto* out = static_cast<typename Kernel::Out*>(segment.out);
  for (uint64_t i = first; i < segment.count; i += step) out[i] = kernel.apply(in[i]);
}

}  // namespace

// X(name, kernel): the entries of the module. A comma inside a kernel needs an alias.
#define HVD_GPU_KERNELS(X)                       \
  X(hvd_copy_1, Copy<uint8_t>)                   \
  X(hvd_copy_2, Copy<uint16_t>)                  \
  X(hvd_copy_4, Copy<uint32_t>)                  \
  X(hvd_copy_8, Copy<uint64_t>)                  \
  X(hvd_scale_uint8, ScaleInteger<uint8_t>)      \
  X(hvd_scale_int8, ScaleInteger<int8_t>)        \
  X(hvd_scale_int32, ScaleInteger<int32_t>)      \
  X(hvd_scale_int64, ScaleInteger<int64_t>)      \
  X(hvd_scale_float16, ScaleHalf<Float16Bits>)   \
  X(hvd_scale_bfloat16, ScaleHalf<Bfloat16Bits>) \
  X(hvd_scale_float32, ScaleFloat<float>)        \
  X(hvd_scale_float64, ScaleFloat<double>)       \
  X(hvd_narrow_float16, Narrow<Float16Bits>)     \
  X(hvd_narrow_bfloat16, Narrow<Bfloat16Bits>)   \
  X(hvd_widen_float16, Widen<Float16Bits>)       \
  X(hvd_widen_bfloat16, Widen<Bfloat16Bits>)

}  // namespace hvd::collective::gpu
