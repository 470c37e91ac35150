// met_sets.h - process sets that their members open and close among themselves. Callers come to a
// meeting in the shared table and wait as for an operation (set_calls.h); whoever holds the role
// opens the channel when all have come, because the list of channels belongs to the role. Coming
// and going: any thread. Never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "base/engine_role.h"
#include "base/status.h"
#include "engine/sets/process_sets.h"
#include "engine/sets/set_changes.h"
#include "engine/sets/surroundings.h"
#include "shm/meeting_table.h"

namespace hvd::engine {

class MetSets {
 public:
  MetSets(const Surroundings& surroundings, ChannelHost& host, ProcessSets& sets)
      : surroundings_(surroundings), host_(host), sets_(sets), meetings_(*surroundings.job) {}

  bool any_changes() const { return changes_.any(); }
  SetChanges& changes() { return changes_; }
  shm::MeetingTable& meetings() { return meetings_; }

  // This rank comes to the meeting of these ranks under `key`.
  Result<std::shared_ptr<SetChange>> come(std::string_view key, std::vector<int32_t> ranks);
  // Asks for a set to be closed.
  std::shared_ptr<SetChange> ask_to_leave(int32_t id, Deadline deadline);
  // This rank waits no more. If the set has opened, it has left it.
  Status withdraw(const shm::MeetingPlace& place);

  // Opens what is complete, closes what is left, refuses what can never be. True: some callers
  // have their answer.
  bool settle() HVD_REQUIRES(engine_role);

  // For stall reports: meetings that this rank has come to and others have not.
  struct Awaited {
    std::shared_ptr<SetChange> change;
    std::vector<int> missing;  // as places in the list of members
    bool is_first;             // this rank came first: its report is the one to be printed
  };
  std::vector<Awaited> awaited();

 private:
  std::vector<int32_t> ranks_on_this_host(const std::vector<int32_t>& ranks) const;
  bool settle_meeting(SetChange& change) HVD_REQUIRES(engine_role);
  bool settle_leaving(SetChange& change) HVD_REQUIRES(engine_role);
  Status why_never(const SetChange& change) const;
  Status open(const SetChange& change) HVD_REQUIRES(engine_role);
  uint32_t wire_id(const SetChange& change) HVD_REQUIRES(engine_role);

  const Surroundings& surroundings_;
  ChannelHost& host_;
  ProcessSets& sets_;
  shm::MeetingTable meetings_;
  SetChanges changes_;
  std::map<uint64_t, uint32_t> met_counts_ HVD_GUARDED_BY(engine_role);  // by key and ranks
};

}  // namespace hvd::engine
