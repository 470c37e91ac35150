// mesh.h - how this rank reaches every other rank: a listener of its own, the addresses of all, the
// job's key. Streams are opened on demand. Both ends ask for the same (peer, purpose); the lower
// rank dials, the higher one accepts. What dials in before this rank asks is kept until it does
// (bounded).
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "net/lane_reduce.h"
#include "net/stream.h"

namespace hvd::net {

class Mesh {
 public:
  virtual ~Mesh() = default;
  // The stream to `peer` (a global rank) for `purpose` (see below); null: not there yet, ask again.
  // Never blocks. Any thread. Each stream is given out once; asking again, when both ends do, opens
  // another one. An error (TIMED_OUT, PRECONDITION_ERROR) lists what was tried.
  virtual Result<std::unique_ptr<Stream>> connect(int32_t peer, uint64_t purpose) = 0;
  // Dialling and accepting make progress here. Any thread; never blocks.
  virtual void poll() = 0;
  // Readable when poll() has something to do (an epoll descriptor).
  virtual int descriptor() const = 0;
  // Whether streams of kGuardedLane are protected where those of kPlainLane are not.
  virtual bool has_guarded_lane() const { return false; }
  // Whether who sleeps on its descriptors wakes every few milliseconds, whatever comes.
  virtual bool wakes_sleepers() const { return false; }
  // For the works of the global process set, where hosts have one rank each; null: this mesh has
  // streams only. It lives as long as the mesh.
  virtual LaneReduce* lane_reduce() { return nullptr; }
};

// Purposes: control is 0; the data streams of a process set carry its id and a lane: one for
// numbers, one for bytes that may be code to whoever gets them (objects).
inline constexpr uint64_t kControlPurpose = 0;
inline constexpr uint32_t kPlainLane = 0, kGuardedLane = 1;
inline constexpr uint64_t data_purpose(uint32_t channel, uint32_t lane) {
  return uint64_t{1} << 63 | uint64_t{channel} << 16 | lane;
}
inline constexpr bool is_plain_lane(uint64_t purpose) {
  return purpose != kControlPurpose && (purpose & 0xffff) == kPlainLane;
}

}  // namespace hvd::net
