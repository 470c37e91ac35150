// process_sets.h - the process sets of this rank: the global one, and those that all ranks add and
// remove at the same place of its order. Sets that members open among themselves: met_sets.h.
// The list of channels to step belongs to the role; looking up a channel is one load, for any
// thread. Never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/engine_role.h"
#include "base/status.h"
#include "collective/gpu/options.h"
#include "engine/channel/channel.h"
#include "engine/sets/set_registry.h"
#include "engine/sets/surroundings.h"

namespace hvd::engine {

// Marks the names between hosts of sets that their members opened among themselves.
inline constexpr uint32_t kMetWireId = 1u << 31;

class ProcessSets {
 public:
  ProcessSets(const Surroundings& surroundings, ChannelHost& host)
      : surroundings_(surroundings),
        host_(host),
        registry_(surroundings.job->header().channel_pool_bytes) {}

  // Opens set 0, of all ranks. First of all.
  Status open_global() HVD_REQUIRES(engine_role);
  Channel& global() const { return *global_; }

  SetRegistry& registry() { return registry_; }
  const SetRegistry& registry() const { return registry_; }
  const std::vector<Channel*>& open_channels() const HVD_REQUIRES(engine_role) {
    return registry_.open_channels();
  }
  // Fails if there is no such set or this rank is not a member; `what` begins the message.
  Result<Channel*> channel_of(int32_t set, std::string_view what) const;

  // A change that all ranks agreed on, at this place of the global order. OK, and no action in
  // op.work: nothing is left to run.
  Status begin_change(const wire::Request& request, Operation& op) HVD_REQUIRES(engine_role);
  // A failure is the job's: the ranks no longer have the same sets.
  Status end_change(Operation& op) HVD_REQUIRES(engine_role);

  // wire_id names the set between hosts, and no set before it.
  ChannelOptions channel_options(int32_t id, uint32_t wire_id,
                                 const std::vector<int32_t>& ranks) const;

 private:
  std::byte* region_of(const SetRegistry::Place& place) const;
  // An agreed set: its id, which may be used again, and how many sets were opened before it.
  uint32_t next_wire_id(int32_t id) const HVD_REQUIRES(engine_role) {
    return (generation_ << 12 | static_cast<uint32_t>(id)) & ~kMetWireId;
  }

  const Surroundings& surroundings_;
  ChannelHost& host_;
  // Channels own it too.
  const std::shared_ptr<collective::gpu::Notices> gpu_notices_ =
      std::make_shared<collective::gpu::Notices>();
  SetRegistry registry_;
  Channel* global_ = nullptr;  // set 0, the fast path
  std::map<int32_t, SetRegistry::Place> opening_ HVD_GUARDED_BY(engine_role);
  uint32_t generation_ HVD_GUARDED_BY(engine_role) = 0;  // sets opened so far; equal on all ranks
};

}  // namespace hvd::engine
