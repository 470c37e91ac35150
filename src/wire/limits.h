// limits.h - upper bounds for everything that is read from another process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd::wire {

inline constexpr size_t kMaxNameBytes = 4096;
inline constexpr int kMaxDimensions = 64;
inline constexpr size_t kMaxTensorsPerRequest = 1u << 20;
inline constexpr size_t kMaxRanks = 1u << 16;
inline constexpr size_t kMaxMessageBytes = 256u << 20;
// Absurd sizes are refused before any arithmetic on them can overflow.
inline constexpr uint64_t kMaxTensorBytes = 1ull << 46;

}  // namespace hvd::wire
