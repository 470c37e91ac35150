#include "control/eager_ring.h"

namespace hvd::control {

std::optional<uint32_t> EagerRing::take_slowly(uint32_t index, uint32_t need, uint32_t watermark) {
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
  return place(index, *at, need);
}

std::optional<uint32_t> EagerRing::fit(uint32_t index, uint32_t need) const {
  if (oldest_ == index) return head_ + need <= soft_end_ ? head_ : 0;  // nothing is live
  const uint32_t tail = offset_[oldest_ % kRecords];
  if (head_ > tail) {
    if (head_ + need <= soft_end_) return head_;
    if (need < tail) return 0;
    if (head_ + need <= kEagerBytes) return head_;
    return std::nullopt;
  }
  if (head_ + need < tail) return head_;
  return std::nullopt;
}

}  // namespace hvd::control
