// shares.h - how the elements of a run are dealt out among members. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace hvd::collective {

// Where the share of `member` begins when `count` elements are dealt out in whole cache lines.
inline uint64_t share_begin(uint64_t count, size_t element_bytes, int members, int member) {
  const uint64_t line = kCacheLine / element_bytes;
  const auto parts = static_cast<uint64_t>(members);
  const uint64_t each = align_up((count + parts - 1) / parts, line);
  return std::min(count, each * static_cast<uint64_t>(member));
}

}  // namespace hvd::collective
