// communicators.h - the communicators of one list of devices: of all members, and for levels of a
// host's members and of those with the same place in their hosts. They are made one after the
// other. Calls need the device's context to be current.
#pragma once

#include <array>
#include <deque>
#include <optional>

#include "collective/gpu/communicator.h"
#include "collective/gpu/levels.h"

namespace hvd::collective::gpu {

class Communicators {
 public:
  // To be made, with all others that `place` counts.
  void plan(Reach reach, const Communicator::Place& place, const NcclId& id) {
    planned_.push_back({reach, place, id});
  }
  // True: all that was planned is there.
  Result<bool> meet(const NcclApi& api);
  // Whether what was begun (meeting, or the launch of calls) is through; a failure of the library
  // or of a peer.
  Result<bool> are_ready() const;
  // Only what was planned, and met.
  Communicator& at(Reach reach) { return *made_[static_cast<size_t>(reach)]; }
  bool has(Reach reach) const { return made_[static_cast<size_t>(reach)].has_value(); }
  void abort();

 private:
  struct Plan {
    Reach reach;
    Communicator::Place place;
    NcclId id;
  };
  std::deque<Plan> planned_;
  std::array<std::optional<Communicator>, 3> made_;  // by reach
};

}  // namespace hvd::collective::gpu
