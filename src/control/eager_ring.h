// eager_ring.h - space in this rank's eager ring, taken in record order and given back when all
// peers have consumed the record. Stays within a small soft end while peers keep up, so that
// payloads stay in cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/cpu.h"
#include "control/board.h"

namespace hvd::control {

class EagerRing {
 public:
  // Space for record `index`; nullopt: no room. Records below `watermark` are consumed everywhere.
  std::optional<uint32_t> take(uint32_t index, uint32_t bytes, uint32_t watermark) {
    const auto need = static_cast<uint32_t>(align_up(std::max(bytes, 1u), kLineSpacing));
    // Mostly there is room behind the last one, whatever was consumed meanwhile. Inline, because
    // an optional that a call returns goes through memory, where its parts wait behind all stores
    // before them: those to a record that a peer polls.
    const uint32_t oldest = oldest_ % kRecords;
    if (HVD_LIKELY(index - oldest_ - 1 < kRecords - 1 && length_[oldest] != 0)) {
      const uint32_t tail = offset_[oldest];
      if (HVD_LIKELY(head_ > tail ? head_ + need <= soft_end_ : head_ + need < tail))
        return place(index, head_, need);
    }
    return take_slowly(index, need, watermark);
  }
  // Worth a fresh watermark before the next take: it would leave the soft end.
  bool wants_watermark(uint32_t bytes) const { return head_ + bytes + kLineSpacing > soft_end_; }
  // Record `index` uses no space. Call for every record, in order, so that reuse is noticed.
  void skip(uint32_t index) { length_[index % kRecords] = 0; }

 private:
  uint32_t place(uint32_t index, uint32_t at, uint32_t need) {
    offset_[index % kRecords] = at;
    length_[index % kRecords] = need;
    head_ = at + need;
    return at;
  }
  std::optional<uint32_t> take_slowly(uint32_t index, uint32_t need, uint32_t watermark);
  std::optional<uint32_t> fit(uint32_t index, uint32_t need) const;

  static constexpr uint32_t kSoftEnd = kEagerBytes / 8;
  std::array<uint32_t, kRecords> offset_{};
  std::array<uint32_t, kRecords> length_{};
  uint32_t oldest_ = 0;  // first record that may still hold space
  uint32_t head_ = 0;
  uint32_t soft_end_ = kSoftEnd;
};

}  // namespace hvd::control
