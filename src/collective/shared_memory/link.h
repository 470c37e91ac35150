// link.h - the shared words and memory of one channel's data plane: two counters per rank, a pair
// ring, and staging. `ready` and `result` of a rank only grow; all ranks count the same steps, so a
// wait is always "has reached". Rules that keep memory safe without further agreement:
//  - at the end of a work that took k steps from `base`, every rank has posted result >= base + k;
//  - a rank writes its staging at step `base + j` only after every peer's result reached what the
//  algorithm says.
// Layout and access only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/engine_role.h"
#include "shm/doorbell.h"

namespace hvd::collective::shared_memory {

inline constexpr size_t kPairChunkBytes = 128 << 10;  // of which each rank owns a half
// A ring holds three live chunks and what is lost at its end: a slot is a quarter of it at most.
inline constexpr size_t kMostPairChunkBytes = 192 << 10;
inline constexpr size_t kPairRingBytes = 512 << 10;
inline constexpr size_t kStagingBytes = 512 << 10;

class Link {
 public:
  static uint64_t region_bytes(int size);
  // `local_ranks[i]` is the rank on this host of channel member i.
  Link(shm::Job& job, std::byte* region, int size, int me, const int* local_ranks);

  int size() const { return size_; }
  int me() const { return me_; }
  int local_rank(int member) const { return local_ranks_[member]; }
  shm::Job& job() const { return job_; }

  std::atomic<uint32_t>& ready(int member) const { return flag(0, member); }
  std::atomic<uint32_t>& result(int member) const { return flag(1, member); }
  void post_ready(uint32_t value) HVD_REQUIRES(engine_role) {
    bell_.post(ready(me_), posted_ready_ = value);
  }
  void post_result(uint32_t value) HVD_REQUIRES(engine_role) {
    bell_.post(result(me_), posted_result_ = value);
  }
  // Nobody else has written this rank's counters.
  bool own_words_are_right() const {
    return ready(me_).load(std::memory_order_relaxed) == posted_ready_ &&
           result(me_).load(std::memory_order_relaxed) == posted_result_;
  }

  bool has_ready(int member, uint32_t wanted) { return has(ready(member), member, wanted); }
  bool has_result(int member, uint32_t wanted) { return has(result(member), member, wanted); }
  bool all_ready(uint32_t wanted);  // of the other members
  bool all_results(uint32_t wanted);

  // What the last has_*/all_* that said no was waiting for.
  shm::Want want() const { return {shm::WantKind::kFlag, want_place_, want_step_}; }
  int want_member() const { return want_member_; }
  // A counter so far from what is awaited that no rank can have written it.
  bool want_is_nonsense() const;

  std::byte* pair_ring(int member) const {
    return rings_ + static_cast<size_t>(member) * kRingStride;
  }
  std::byte* staging(int member) const {
    return staging_ + static_cast<size_t>(member) * kStagingStride;
  }

  // Steps of finished works; the same on all ranks at the same place in the agreed order.
  uint32_t step = 0;
  shm::Doorbell& bell() { return bell_; }
  const shm::Doorbell& bell() const { return bell_; }

 private:
  // Odd numbers of pages between the ranks' memory: see Arena.
  static constexpr size_t kRingStride = kPairRingBytes + 5 * 4096 + 256;
  static constexpr size_t kStagingStride = kStagingBytes + 5 * 4096 + 256;
  std::atomic<uint32_t>& flag(int kind, int member) const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(
        flags_ + static_cast<size_t>(kind * size_ + member) * kLineSpacing);
  }
  bool has(const std::atomic<uint32_t>& word, int member, uint32_t wanted) {
    if (shm::reached(word.load(std::memory_order_acquire), wanted)) return true;
    want_place_ = bell_.place_of(word);
    want_step_ = wanted;
    want_member_ = member;
    want_word_ = &word;
    return false;
  }

  shm::Job& job_;
  shm::Doorbell bell_;
  const int size_;
  const int me_;
  const int* local_ranks_;
  std::byte* flags_;
  std::byte* rings_;
  std::byte* staging_;
  uint32_t want_place_ = 0;
  uint32_t want_step_ = 0;
  int want_member_ = 0;
  const std::atomic<uint32_t>* want_word_ = nullptr;
  int first_missing_ = 0;
  uint32_t posted_ready_ = 0, posted_result_ = 0;
};

}  // namespace hvd::collective::shared_memory
