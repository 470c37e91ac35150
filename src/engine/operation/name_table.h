// name_table.h - from what a submission says to its slot, and which names are in flight.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "engine/operation/operation.h"

namespace hvd::engine {

class NameTable {
 public:
  // nullptr: unknown.
  NameState* find(std::string_view name, uint64_t hash) const {
    const auto found = names_.find(hash);
    if (found == names_.end() || found->second->name != name) return nullptr;
    return found->second.get();
  }
  NameState* find_or_add(std::string_view name,
                         uint64_t hash);  // nullptr: another name has this hash

  CachedPtr find_group(uint64_t key) const { return look_up(groups_, key); }
  CachedPtr find_unnamed(uint64_t signature) const { return look_up(unnamed_, signature); }
  void set_group(uint64_t key, CachedPtr slot) { groups_[key] = std::move(slot); }
  void set_unnamed(uint64_t signature, CachedPtr slot) { unnamed_[signature] = std::move(slot); }

  // The slot was evicted: forget it and names that nobody uses.
  void forget(const negotiate::Slot& slot);
  void forget_if_idle(NameState* state);

 private:
  struct AsIs {
    size_t operator()(uint64_t hash) const { return hash; }
  };
  using SlotMap = std::unordered_map<uint64_t, CachedPtr, AsIs>;
  static CachedPtr look_up(const SlotMap& map, uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
  }
  static void erase_from(SlotMap& map, uint64_t key, const negotiate::Slot& slot);

  std::unordered_map<uint64_t, std::unique_ptr<NameState>, AsIs> names_;
  SlotMap groups_;
  SlotMap unnamed_;
};

}  // namespace hvd::engine
