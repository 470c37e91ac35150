// cpu.h - the few instructions that waiting needs. Any thread.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hvd {

// Asks for a cache line with the right to write it, before the write. (The compiler's built-in
// gives a plain prefetch unless it may use newer instructions; processors that lack this one ignore
// it.)
inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

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
