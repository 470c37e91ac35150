// staging.h - a work in device memory, run through pinned host memory by the backends of the host:
// while one part is reduced, the next one is copied in and the last one out. Never blocks. The
// device's context must be current.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "collective/gpu/host_lane.h"
#include "collective/gpu/staging_parts.h"
#include "collective/gpu/waker.h"
#include "device/stream.h"
#include "device/use.h"

namespace hvd::collective::gpu {

// Kept between works: pinning memory takes long.
struct StagingMemory {
  device::PinnedMemory memory;
  std::vector<device::PinnedMemory> outgrown;

  // Room for as many turns of `bytes` as staging uses.
  Status reserve(uint64_t bytes, uint64_t turns);
};

struct StagingMeans {
  HostLane& lane;
  const device::Stream& in;   // copies to the host
  const device::Stream& out;  // copies to the device
  StagingMemory& memory;
  std::shared_ptr<Waker> waker;
  int device;
};

class Staging {
 public:
  static constexpr uint64_t kTurns = 4;

  Staging(Work& work, const StagingMeans& means) : work_(work), means_(means) {}
  // kDone: the results are on the device.
  Progress advance() HVD_REQUIRES(engine_role);
  // Why it cannot go on; OK otherwise.
  const Status& status() const { return status_; }

 private:
  enum class State { kFree, kComingIn, kReducing, kReduced, kGoingOut };
  struct Turn {
    State state = State::kFree;
    Part part;
    Work host;
    device::Event event;
  };

  Status begin();
  Status step(bool& moved) HVD_REQUIRES(engine_role);
  Status start_next(Turn& turn);
  Status go_out(Turn& turn);
  std::byte* memory_of(uint64_t index) const {
    return means_.memory.memory.data() + index % turns_ * part_bytes_;
  }

  Work& work_;
  const StagingMeans means_;
  Status status_;
  bool has_begun_ = false;
  uint64_t part_count_ = 0, part_bytes_ = 0, turns_ = 1;
  uint64_t started_ = 0, queued_ = 0, finished_ = 0;  // parts, in order
  std::array<Turn, kTurns> all_;
};

}  // namespace hvd::collective::gpu
