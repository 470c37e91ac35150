#include "collective/shared_memory/link.h"

namespace hvd::collective::shared_memory {

uint64_t Link::region_bytes(int size) {
  const auto ranks = static_cast<uint64_t>(size);
  return align_up(3 * ranks * kLineSpacing, 4096) + ranks * (kRingStride + kStagingStride);
}

Link::Link(shm::Job& job, std::byte* region, int size, int me, const int* local_ranks)
    : job_(job),
      bell_(job),
      size_(size),
      me_(me),
      local_ranks_(local_ranks),
      flags_(region),
      rings_(region + align_up(3 * static_cast<uint64_t>(size) * kLineSpacing, 4096)),
      staging_(rings_ + static_cast<size_t>(size) * kRingStride) {}

bool Link::all_ready(uint32_t wanted) {
  for (int i = 0; i < size_; ++i) {
    const int member = (first_missing_ + i) % size_;
    if (member != me_ && !has_ready(member, wanted)) {
      first_missing_ = member;
      return false;
    }
  }
  return true;
}

bool Link::all_results(uint32_t wanted) {
  for (int i = 0; i < size_; ++i) {
    const int member = (first_missing_ + i) % size_;
    if (member != me_ && !has_result(member, wanted)) {
      first_missing_ = member;
      return false;
    }
  }
  return true;
}

bool Link::want_is_nonsense() const {
  if (want_word_ == nullptr) return false;
  // Between what was there and what is awaited lie at most the steps of one work.
  const uint32_t behind = want_step_ - want_word_->load(std::memory_order_acquire);
  return behind > (1u << 30) && behind < (3u << 30);
}

}  // namespace hvd::collective::shared_memory
