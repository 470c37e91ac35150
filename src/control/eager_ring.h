// eager_ring.h - space in this rank's eager ring, taken in record order and given back when all
// peers have consumed the record. Stays within a small soft end while peers keep up, so that
// payloads stay in cache. Needs the submit lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "control/board.h"

namespace hvd::control {

class EagerRing {
 public:
  // Space for record `index`; nullopt: no room. Records below `watermark` are consumed everywhere.
  std::optional<uint32_t> take(uint32_t index, uint32_t bytes, uint32_t watermark);
  // Worth a fresh watermark before the next take: it would leave the soft end.
  bool wants_watermark(uint32_t bytes) const { return head_ + bytes + kLineSpacing > soft_end_; }
  // Record `index` uses no space. Call for every record, in order, so that reuse is noticed.
  void skip(uint32_t index) { length_[index % kRecords] = 0; }

 private:
  std::optional<uint32_t> fit(uint32_t index, uint32_t bytes);

  static constexpr uint32_t kSoftEnd = 64 << 10;
  std::array<uint32_t, kRecords> offset_{};
  std::array<uint32_t, kRecords> length_{};
  uint32_t oldest_ = 0;  // first record that may still hold space
  uint32_t head_ = 0;
  uint32_t soft_end_ = kSoftEnd;
};

}  // namespace hvd::control
