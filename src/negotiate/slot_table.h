// slot_table.h - the response cache: operations that all ranks have agreed on once, by number.
// A replicated state machine: every rank applies the same insertions, in the agreed order, so
// numbers and evictions are the same everywhere without a message. Numbers are never reused. An
// evicted slot stays known ("buried") until every rank has shown that it knows about the eviction,
// because its records may still name it. Pure. Changes need both rights of an engine, find() one of
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/explore.h"
#include "negotiate/validate.h"
#include "wire/request.h"

namespace hvd::negotiate {

struct Slot {
  uint32_t id = 0;
  uint64_t key = 0;  // see control::key_of; unnamed slots: a hash of the signature
  bool is_unnamed = false;
  bool is_live = true;                  // false: evicted
  uint32_t last_used = 0;               // agreed operations when it was used last
  uint32_t buried_at = 0;               // table version of its eviction
  std::vector<wire::Request> requests;  // one for all ranks, or one per rank where they differ
  Plan plan;

  const wire::Request& request_of(int rank) const {
    return requests[requests.size() == 1 ? 0 : static_cast<size_t>(rank)];
  }
  wire::Kind kind() const { return requests[0].kind; }
};

using SlotPtr = std::shared_ptr<Slot>;  // second owners: whoever names it

class SlotTable {
 public:
  SlotTable(size_t capacity, int ranks)
      : capacity_(capacity), views_(static_cast<size_t>(ranks), 0) {}

  size_t capacity() const { return capacity_; }
  size_t live_count() const { return live_count_.load(std::memory_order_relaxed); }
  uint32_t version() const { return version_; }
  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }

  // Gives the slot its number; an older slot with the same name goes, and the least recently used
  // when it is full. Returns what went.
  std::vector<SlotPtr> insert(SlotPtr slot, uint32_t now);
  // Live or buried; nullptr if nobody can name it any more.
  Slot* find(uint32_t id) const;
  SlotPtr find_shared(uint32_t id) const;

  // `rank` knows the table up to `view`.
  void saw_view(int rank, uint32_t view);
  bool has_buried() const { return !buried_.empty(); }

 private:
  friend struct explore::Probe;
  void bury(uint32_t id);
  void forget_buried();

  const size_t capacity_;
  uint32_t next_id_ = 1;
  uint32_t version_ = 0;  // grows with every change
  // Statistics, readable by anybody.
  std::atomic<uint64_t> evictions_{0};
  std::atomic<size_t> live_count_{0};
  std::unordered_map<uint32_t, SlotPtr> live_;
  std::unordered_map<uint64_t, uint32_t> named_;  // key -> live slot
  std::deque<SlotPtr> buried_;                    // oldest first
  std::vector<uint32_t> views_;
};

}  // namespace hvd::negotiate
