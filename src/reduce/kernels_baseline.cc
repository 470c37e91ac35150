// The kernels in what every machine of the architecture has (SSE2 on x86-64, NEON on arm64).
#include "reduce/kernel_table.h"
#include "reduce/tables.h"

namespace hvd {
namespace {

struct Baseline {
  static constexpr const char* kName = "baseline";
  static constexpr int kVectorBytes = 16;

  typedef float Floats __attribute__((vector_size(16)));
  typedef uint32_t Words __attribute__((vector_size(16)));
  typedef uint16_t Shorts __attribute__((vector_size(8)));

  // Not inlined: without instructions for it a conversion is long, and there are many loops.
  [[gnu::noinline]] static Floats widen_float16(Shorts halves) {
    return hvd::widen_float16<Floats>(__builtin_convertvector(halves, Words));
  }
  [[gnu::noinline]] static Shorts narrow_float16(Floats floats) {
    return __builtin_convertvector(hvd::narrow_float16(floats), Shorts);
  }
  // Not every machine has stores that pass by the caches.
  static void stream(char* dst, VectorOf<uint8_t, 16>::type value) { store_as(dst, value); }
  static void finish_streams() {}

  static float widen_float16_one(uint16_t half) { return float16_to_float(half); }
  static uint16_t narrow_float16_one(float value) { return float_to_float16(value); }
};

}  // namespace

constexpr Kernels kBaselineKernels = make_kernels<Baseline>();

}  // namespace hvd
