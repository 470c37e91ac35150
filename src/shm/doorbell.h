// doorbell.h - telling sleepers that what they wait for has happened, at the cost of one load when
// nobody sleeps.
//
// The publisher stores its word (sequentially consistent, or followed by such a read-modify-write),
// then loads `parked`. The sleeper raises `parked` (same order), then looks at the word once more
// before it sleeps. One of the two must see the other.
#pragma once

#include <atomic>

#include "base/cpu.h"
#include "shm/job.h"

namespace hvd::shm {

class Doorbell {
 public:
  explicit Doorbell(const Job& job)
      : job_(job), parked_(job.header().parked), base_(reinterpret_cast<const char*>(job.base())) {}

  // Publishes `value` in `word` and wakes whoever waits for it.
  void post(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value, std::memory_order_seq_cst);
    if (HVD_UNLIKELY(anybody_sleeps())) wake_for_flag(word, value);
  }

  // After a publication that was followed by a full fence.
  bool anybody_sleeps() const { return parked_.load(std::memory_order_seq_cst) != 0; }

  // Wakes sleepers that want records of `channel` for which present(index) is true, and those that
  // want anything.
  template <typename Present>
  void wake_for_records(uint32_t channel, const Present& present) {
    for (int rank = 0; rank < job_.size(); ++rank) {
      // The own rank too: another thread of this process may sleep with the role, for something
      // else.
      if (job_.block(rank).park.load(std::memory_order_seq_cst) == 0) continue;
      const Want want = unpack_want(job_.block(rank).want.load(std::memory_order_relaxed));
      const bool wanted =
          want.kind == WantKind::kAny || rank == job_.rank() ||
          (want.kind == WantKind::kRecords && want.where == channel && present(want.index));
      if (wanted && job_.wake(rank)) wakes_sent_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Where a flag lies, as Want::where.
  uint32_t place_of(const std::atomic<uint32_t>& word) const {
    const auto line = (reinterpret_cast<const char*>(&word) - base_) / kCacheLine;
    return static_cast<uint32_t>(line) & kWantPlaces;  // two places may look alike: a wake too many
  }

  uint64_t wakes_sent() const { return wakes_sent_.load(std::memory_order_relaxed); }

 private:
  void wake_for_flag(const std::atomic<uint32_t>& word, uint32_t value);

  const Job& job_;
  std::atomic<uint32_t>& parked_;
  const char* base_;
  std::atomic<uint64_t> wakes_sent_{0};  // statistics
};

}  // namespace hvd::shm
