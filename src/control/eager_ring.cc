#include "control/eager_ring.h"

#include <algorithm>

#include "base/bytes.h"

namespace hvd::control {

std::optional<uint32_t> EagerRing::take(uint32_t index, uint32_t bytes, uint32_t watermark) {
  const auto need = static_cast<uint32_t>(align_up(std::max(bytes, 1u), kLineSpacing));
  skip(index);
  if (need > kEagerBytes / 2) return std::nullopt;
  soft_end_ = std::min<uint32_t>(std::max(soft_end_, 4 * need), kEagerBytes);
  while (oldest_ != index &&
         (!shm::reached(oldest_, watermark) || length_[oldest_ % kRecords] == 0)) {
    ++oldest_;
  }
  const auto at = fit(index, need);
  if (!at) {
    soft_end_ = std::min<uint32_t>(2 * soft_end_, kEagerBytes);
    return std::nullopt;
  }
  offset_[index % kRecords] = *at;
  length_[index % kRecords] = need;
  head_ = *at + need;
  return at;
}

std::optional<uint32_t> EagerRing::fit(uint32_t index, uint32_t bytes) {
  if (oldest_ == index) return head_ + bytes <= soft_end_ ? head_ : 0;  // nothing is live
  const uint32_t tail = offset_[oldest_ % kRecords];
  if (head_ > tail) {
    if (head_ + bytes <= soft_end_) return head_;
    if (bytes < tail) return 0;
    if (head_ + bytes <= kEagerBytes) return head_;
    return std::nullopt;
  }
  if (head_ + bytes < tail) return head_;
  return std::nullopt;
}

}  // namespace hvd::control
