#include "tests/explore/probe.h"

#include <algorithm>
#include <vector>

#include "base/hash.h"

namespace hvd::explore {
namespace {

class Digest {
 public:
  void add(uint64_t value) { value_ = mix(value_ + 0x9e3779b97f4a7c15ull, value); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1;
};

}  // namespace

uint64_t Probe::table_digest(const engine::Channel& channel) {
  const negotiate::SlotTable& table = channel.slots_;
  std::vector<const negotiate::Slot*> live;
  for (const auto& [id, slot] : table.live_) live.push_back(slot.get());
  std::sort(live.begin(), live.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  Digest digest;
  digest.add(channel.tuning_.bits_);
  digest.add(table.version_);
  digest.add(table.next_id_);
  for (const negotiate::Slot* slot : live) {
    digest.add(slot->id);
    // The signature of an unnamed slot may differ between ranks, as their requests do.
    digest.add(slot->is_unnamed ? 0 : slot->key);
    digest.add(slot->last_used);
  }
  return digest.value();
}

uint64_t Probe::state_digest(const engine::Channel& channel) {
  const control::Order& order = channel.order_;
  Digest digest;
  digest.add(table_digest(channel));
  for (const auto& slot : channel.slots_.buried_) digest.add(slot->id);
  for (const uint32_t view : channel.slots_.views_) digest.add(view);
  digest.add(channel.tuning_.proposal());
  digest.add(order.log_mode_);
  digest.add(order.log_index_);
  digest.add(order.resync_after_);
  for (int rank = 0; rank < channel.size(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    const control::Order::Stream& stream = order.streams_[r];
    digest.add(order.index_of(rank));
    digest.add(order.joined_[r]);
    digest.add(order.kept_[r].size());
    digest.add(order.lows_[r]);
    if (!order.log_mode_) continue;
    digest.add(stream.scanned);
    digest.add(stream.consumed);
    digest.add(stream.open_base);
    digest.add(stream.join_seen);
    for (const auto* pending : stream.open) digest.add(pending == nullptr ? 0 : pending->key);
  }
  for (const auto* pending : order.ready_) digest.add(pending->key);
  digest.add(channel.outbox_.tail());
  digest.add(channel.outbox_.watermark_);
  digest.add(channel.outbox_.queue_.size());
  digest.add(channel.place_.finished);
  digest.add(channel.place_.agreed);
  digest.add(channel.works_.running_.size());
  digest.add(channel.link_.step);
  // How far the task is that runs: what it waits for.
  digest.add(channel.works_.is_idle() ? 0 : shm::pack(channel.link_.want()));
  digest.add(channel.works_.is_idle());
  return digest.value();
}

size_t Probe::held_records(const engine::Channel& channel) {
  const control::Order& order = channel.order_;
  size_t count = 0;
  for (size_t rank = 0; rank < order.streams_.size(); ++rank) {
    count += order.kept_[rank].size();
    for (const auto* pending : order.streams_[rank].open) count += pending != nullptr ? 1 : 0;
  }
  return count;
}

}  // namespace hvd::explore
