#include "engine/operation/name_table.h"

#include "base/hash.h"

namespace hvd::engine {

NameState* NameTable::find_or_add(std::string_view name, uint64_t hash) {
  auto& state = names_[hash];
  if (state == nullptr) {
    state = std::make_unique<NameState>();
    state->name = name;
    state->hash = hash;
  }
  return state->name == name ? state.get() : nullptr;
}

void NameTable::erase_from(SlotMap& map, uint64_t key, const negotiate::Slot& slot) {
  const auto found = map.find(key);
  if (found != map.end() && found->second.get() == &slot) map.erase(found);
}

void NameTable::forget(const negotiate::Slot& slot) {
  if (slot.is_unnamed) return erase_from(unnamed_, slot.key, slot);
  const auto& tensors = slot.requests[0].tensors;
  if (tensors.size() > 1) return erase_from(groups_, slot.key, slot);
  const auto found = names_.find(slot.key);
  if (found == names_.end() || found->second->slot.get() != &slot) return;
  found->second->slot.reset();
  forget_if_idle(found->second.get());
}

void NameTable::forget_if_idle(NameState* state) {
  if (state->slot == nullptr && !state->in_flight.load(std::memory_order_relaxed))
    names_.erase(state->hash);
}

}  // namespace hvd::engine
