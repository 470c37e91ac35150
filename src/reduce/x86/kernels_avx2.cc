// The kernels for x86-64 with AVX2 and F16C; compiled with flags of its own (see ../flags.cmake).
#include <immintrin.h>

#include "reduce/kernel_table.h"
#include "reduce/tables.h"

namespace hvd {
namespace {

struct Avx2 {
  static constexpr const char* kName = "avx2";
  static constexpr int kVectorBytes = 32;

  typedef float Floats __attribute__((vector_size(32)));
  typedef uint16_t Shorts __attribute__((vector_size(16)));

  static Floats widen_float16(Shorts halves) { return (Floats)_mm256_cvtph_ps((__m128i)halves); }
  static Shorts narrow_float16(Floats floats) {
    return (Shorts)_mm256_cvtps_ph((__m256)floats, _MM_FROUND_TO_NEAREST_INT);
  }
  // Stores that pass by the caches, and what makes them visible before later stores.
  static void stream(char* dst, VectorOf<uint8_t, 32>::type value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst), (__m256i)value);
  }
  static void finish_streams() { _mm_sfence(); }

  static float widen_float16_one(uint16_t half) { return _cvtsh_ss(half); }
  static uint16_t narrow_float16_one(float value) {
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
  }
};

}  // namespace

constexpr Kernels kAvx2Kernels = make_kernels<Avx2>();

}  // namespace hvd
