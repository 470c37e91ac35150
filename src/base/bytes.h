// bytes.h - size arithmetic that cannot overflow unnoticed. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hvd {

inline constexpr size_t kCacheLine = 64;
inline constexpr size_t kPageBytes = 4096;
// Adjacent-line prefetch pairs lines, so what two ranks write lies two lines apart.
inline constexpr size_t kLineSpacing = 128;

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
  uint64_t out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
  uint64_t out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}
constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace hvd
