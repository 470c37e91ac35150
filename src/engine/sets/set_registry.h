// set_registry.h - the process sets of a job and where their channels lie in the segment.
// Agreed sets are a replicated state machine: every rank applies the same additions and removals in
// the agreed order of the global set. Removed ids are reused first in, first out. Met sets are
// those that their members opened among themselves (shm/meeting_table.h): known to members alone,
// with ids of their own. Reading is for any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/engine_role.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "engine/channel/channel.h"
#include "shm/meeting_table.h"

namespace hvd::engine {

// Sorts the ranks of a set; fails if one is outside the job or occurs twice.
Status check_set_ranks(std::vector<int32_t>& ranks, int size);

class SetRegistry {
 public:
  static constexpr int32_t kMaxSets = 4096;
  static constexpr int32_t kFirstMetId = 2048;  // agreed sets lie below
  static_assert(kFirstMetId + static_cast<int32_t>(shm::kMeetings) <= kMaxSets);
  explicit SetRegistry(uint64_t pool_bytes) : pool_bytes_(pool_bytes), channels_(kMaxSets) {}

  struct Place {
    int32_t id;
    uint64_t offset;  // of the channel's region in the pool
    uint64_t bytes;
  };
  // Reserves an id and a region for these (sorted) ranks. EXISTING sets and a full pool are errors,
  // the same on all ranks.
  Result<Place> reserve(const std::vector<int32_t>& ranks) HVD_REQUIRES(engine_role)
      HVD_EXCLUDES(mutex_);
  // Makes a reserved set visible; channel is null on ranks that are not members.
  void open(const Place& place, std::unique_ptr<Channel> channel) HVD_REQUIRES(engine_role)
      HVD_EXCLUDES(mutex_);
  // Takes a set away; its channel (if this rank is a member) stays alive until the registry goes.
  Status remove(int32_t id) HVD_REQUIRES(engine_role) HVD_EXCLUDES(mutex_);

  static int32_t met_id(const shm::MeetingPlace& place) {
    return kFirstMetId + static_cast<int32_t>(place.index);
  }
  void open_met(const shm::MeetingPlace& place, std::unique_ptr<Channel> channel)
      HVD_REQUIRES(engine_role) HVD_EXCLUDES(mutex_);
  // Like remove(). nullopt: no such set.
  std::optional<shm::MeetingPlace> close_met(int32_t id) HVD_REQUIRES(engine_role)
      HVD_EXCLUDES(mutex_);
  bool has_met() const { return met_count_.load(std::memory_order_relaxed) != 0; }

  // nullptr: unknown set, or this rank is not a member. One load: the fast path.
  Channel* channel(int32_t id) const {
    return id < 0 || id >= kMaxSets
               ? nullptr
               : channels_[static_cast<size_t>(id)].load(std::memory_order_acquire);
  }
  std::optional<std::vector<int32_t>> ranks(int32_t id) const HVD_EXCLUDES(mutex_);
  // The agreed set of exactly these (sorted) ranks.
  std::optional<int32_t> find(const std::vector<int32_t>& ranks) const HVD_EXCLUDES(mutex_);
  std::vector<int32_t> ids() const HVD_EXCLUDES(mutex_);      // of agreed sets
  std::vector<int32_t> met_ids() const HVD_EXCLUDES(mutex_);  // of met sets
  // Channels of this rank, for stepping.
  const std::vector<Channel*>& open_channels() const HVD_REQUIRES(engine_role) { return open_; }
  // Those of sets that were taken away, too.
  const std::vector<std::unique_ptr<Channel>>& all_channels() const HVD_REQUIRES(engine_role) {
    return owned_;
  }

 private:
  uint64_t find_region(uint64_t bytes) const HVD_REQUIRES(mutex_);
  void publish(int32_t id, std::unique_ptr<Channel> channel) HVD_REQUIRES(mutex_, engine_role);
  void hide(int32_t id) HVD_REQUIRES(mutex_, engine_role);

  struct Set {
    std::vector<int32_t> ranks;
    uint64_t offset, bytes;
    bool is_open;
  };
  const uint64_t pool_bytes_;
  mutable Mutex mutex_;
  std::map<int32_t, Set> sets_ HVD_GUARDED_BY(mutex_);
  std::map<int32_t, shm::MeetingPlace> met_ HVD_GUARDED_BY(mutex_);
  std::atomic<uint32_t> met_count_{0};  // of met_; a hint
  std::deque<int32_t> free_ids_ HVD_GUARDED_BY(mutex_);
  int32_t next_id_ HVD_GUARDED_BY(mutex_) = 0;
  std::vector<std::atomic<Channel*>> channels_;  // published by open(), cleared by remove()
  std::vector<Channel*> open_ HVD_GUARDED_BY(engine_role);
  std::vector<std::unique_ptr<Channel>> owned_;
};

}  // namespace hvd::engine
