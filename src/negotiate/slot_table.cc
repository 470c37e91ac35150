#include "negotiate/slot_table.h"

#include <algorithm>

namespace hvd::negotiate {

std::vector<SlotPtr> SlotTable::insert(SlotPtr slot, uint32_t now) {
  std::vector<SlotPtr> evicted;
  if (capacity_ == 0) return evicted;
  ++version_;
  if (const auto same = named_.find(slot->key); !slot->is_unnamed && same != named_.end()) {
    evicted.push_back(live_.at(same->second));
    bury(same->second);
  }
  while (live_.size() >= capacity_) {
    const auto oldest =
        std::min_element(live_.begin(), live_.end(), [&](const auto& a, const auto& b) {
          const uint32_t age_a = now - a.second->last_used, age_b = now - b.second->last_used;
          return age_a != age_b ? age_a > age_b : a.first < b.first;
        });
    evicted.push_back(oldest->second);
    evictions_.fetch_add(1, std::memory_order_relaxed);
    bury(oldest->first);
  }
  slot->id = next_id_++;
  if (next_id_ >= 0xfffffff0u) next_id_ = 1;  // after four thousand million new tensors
  slot->last_used = now;
  slot->is_live = true;
  if (!slot->is_unnamed) named_[slot->key] = slot->id;
  const uint32_t id = slot->id;
  live_[id] = std::move(slot);
  live_count_.store(live_.size(), std::memory_order_relaxed);
  return evicted;
}

void SlotTable::bury(uint32_t id) {
  const auto found = live_.find(id);
  SlotPtr slot = found->second;
  live_.erase(found);
  if (!slot->is_unnamed) named_.erase(slot->key);
  slot->is_live = false;
  slot->buried_at = version_;
  buried_.push_back(std::move(slot));
  forget_buried();
}

Slot* SlotTable::find(uint32_t id) const {
  const auto found = live_.find(id);
  if (found != live_.end()) return found->second.get();
  for (const SlotPtr& slot : buried_) {
    if (slot->id == id) return slot.get();
  }
  return nullptr;
}

SlotPtr SlotTable::find_shared(uint32_t id) const {
  const auto found = live_.find(id);
  if (found != live_.end()) return found->second;
  for (const SlotPtr& slot : buried_) {
    if (slot->id == id) return slot;
  }
  return nullptr;
}

void SlotTable::saw_view(int rank, uint32_t view) {
  uint32_t& known = views_[static_cast<size_t>(rank)];
  if (static_cast<int32_t>(view - known) <= 0) return;
  known = view;
  forget_buried();
}

void SlotTable::forget_buried() {
  const auto everybody_knows = [&](const Slot& slot) {
    return std::all_of(views_.begin(), views_.end(), [&](uint32_t view) {
      return static_cast<int32_t>(view - slot.buried_at) >= 0;
    });
  };
  while (!buried_.empty() && everybody_knows(*buried_.front())) buried_.pop_front();
}

}  // namespace hvd::negotiate
