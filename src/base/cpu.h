// cpu.h - the few instructions that waiting needs. Any thread.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd {

inline void cpu_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

#define HVD_LIKELY(x) __builtin_expect(!!(x), 1)
#define HVD_UNLIKELY(x) __builtin_expect(!!(x), 0)

}  // namespace hvd
