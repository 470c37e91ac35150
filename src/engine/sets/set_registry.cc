#include "engine/sets/set_registry.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"

namespace hvd::engine {

Status check_set_ranks(std::vector<int32_t>& ranks, int size) {
  std::sort(ranks.begin(), ranks.end());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const bool twice = i > 0 && ranks[i] == ranks[i - 1];
    if (!twice && ranks[i] >= 0 && ranks[i] < size) continue;
    const std::string what =
        twice ? std::string(" occurs twice") : concat(" is outside the job of size ", size);
    return invalid_argument(
        concat("process set [", join_text(ranks, ", ", 16), "]: rank ", ranks[i], what));
  }
  return Status::ok();
}

uint64_t SetRegistry::find_region(uint64_t bytes) const {
  std::vector<std::pair<uint64_t, uint64_t>> used;
  for (const auto& [id, set] : sets_) used.emplace_back(set.offset, set.bytes);
  std::sort(used.begin(), used.end());
  uint64_t at = 0;
  for (const auto& [offset, length] : used) {
    if (offset - at >= bytes) break;
    at = offset + length;
  }
  return at;
}

Result<SetRegistry::Place> SetRegistry::reserve(const std::vector<int32_t>& ranks) {
  MutexLock lock(mutex_);
  for (const auto& [id, set] : sets_) {
    if (set.ranks == ranks) {
      return invalid_argument(
          concat("process set [", join_text(ranks, ", ", 16), "] exists already, with id ", id));
    }
  }
  const uint64_t bytes =
      align_up(Channel::region_bytes(static_cast<int>(ranks.size())), 4096) + 4096;
  const uint64_t offset = find_region(bytes);
  if (bytes > pool_bytes_ || offset > pool_bytes_ - bytes ||
      (free_ids_.empty() && next_id_ >= kFirstMetId)) {
    return Status(StatusCode::kOutOfMemory,
                  concat("no room for another process set of ", ranks.size(), " ranks beside the ",
                         sets_.size(), " that exist"));
  }
  Place place{next_id_, offset, bytes};
  if (free_ids_.empty()) {
    ++next_id_;
  } else {
    place.id = free_ids_.front();
    free_ids_.pop_front();
  }
  sets_[place.id] = {ranks, offset, bytes, false};
  return place;
}

void SetRegistry::open(const Place& place, std::unique_ptr<Channel> channel) {
  MutexLock lock(mutex_);
  sets_.at(place.id).is_open = true;
  if (channel != nullptr) publish(place.id, std::move(channel));
}

void SetRegistry::publish(int32_t id, std::unique_ptr<Channel> channel) {
  channels_[static_cast<size_t>(id)].store(channel.get(), std::memory_order_release);
  open_.push_back(channel.get());
  owned_.push_back(std::move(channel));
}

void SetRegistry::hide(int32_t id) {
  Channel* channel = channels_[static_cast<size_t>(id)].exchange(nullptr);
  std::erase(open_, channel);
}

Status SetRegistry::remove(int32_t id) {
  MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end() || id == 0)
    return invalid_argument(concat("process set ", id, " does not exist"));
  sets_.erase(found);
  free_ids_.push_back(id);
  hide(id);
  return Status::ok();
}

void SetRegistry::open_met(const shm::MeetingPlace& place, std::unique_ptr<Channel> channel) {
  MutexLock lock(mutex_);
  met_[met_id(place)] = place;
  met_count_.store(static_cast<uint32_t>(met_.size()), std::memory_order_relaxed);
  publish(met_id(place), std::move(channel));
}

std::optional<shm::MeetingPlace> SetRegistry::close_met(int32_t id) {
  MutexLock lock(mutex_);
  const auto found = met_.find(id);
  if (found == met_.end()) return std::nullopt;
  const shm::MeetingPlace place = found->second;
  met_.erase(found);
  met_count_.store(static_cast<uint32_t>(met_.size()), std::memory_order_relaxed);
  hide(id);
  return place;
}

std::optional<std::vector<int32_t>> SetRegistry::ranks(int32_t id) const {
  MutexLock lock(mutex_);
  if (met_.count(id) != 0) return channel(id)->ranks();
  const auto found = sets_.find(id);
  if (found == sets_.end() || !found->second.is_open) return std::nullopt;
  return found->second.ranks;
}

std::optional<int32_t> SetRegistry::find(const std::vector<int32_t>& ranks) const {
  MutexLock lock(mutex_);
  for (const auto& [id, set] : sets_) {
    if (set.ranks == ranks) return id;
  }
  return std::nullopt;
}

std::vector<int32_t> SetRegistry::ids() const {
  MutexLock lock(mutex_);
  std::vector<int32_t> result;
  for (const auto& [id, set] : sets_) {
    if (set.is_open) result.push_back(id);
  }
  return result;
}

std::vector<int32_t> SetRegistry::met_ids() const {
  MutexLock lock(mutex_);
  std::vector<int32_t> result;
  for (const auto& [id, place] : met_) result.push_back(id);
  return result;
}

}  // namespace hvd::engine
