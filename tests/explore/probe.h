// probe.h - what the explorer knows of a channel beyond its interface: digests of replicated and of
// private state, and the sizes of what must stay bounded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/channel/channel.h"

namespace hvd::explore {

struct Probe {
  // Operations agreed so far, and the slot table after them: the same on every rank.
  static uint32_t agreed(const engine::Channel& channel) { return channel.place_.agreed; }
  static uint64_t table_digest(const engine::Channel& channel);
  // Everything of this rank that decides how it goes on.
  static uint64_t state_digest(const engine::Channel& channel);

  static size_t buried(const engine::Channel& channel) { return channel.slots_.buried_.size(); }
  // Records that were read and are not agreed, of all streams.
  static size_t held_records(const engine::Channel& channel);
  static bool is_in_log_mode(const engine::Channel& channel) {
    return channel.order_.is_in_log_mode();
  }
};

}  // namespace hvd::explore
