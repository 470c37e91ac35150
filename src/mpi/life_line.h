// life_line.h - a TCP connection beside a control stream of MPI, which tells that the peer is gone:
// MPI itself says nothing when a host vanishes. The kernel answers for a process that computes or
// is stopped, so silence means that the host or the way to it is gone, and an end without a
// farewell that the process is. Where no connection can be made the job does without.
// One thread at a time. Never blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "net/mesh.h"
#include "net/stream.h"

namespace hvd::mpi {

class LifeLine {
 public:
  // `mesh` is shared by all lines of the rank.
  LifeLine(std::shared_ptr<net::Mesh> mesh, int32_t peer);
  // Says farewell: what ends now ends as it should.
  ~LifeLine();
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;

  // Looks. PEER_LOST: the peer is gone.
  Status look();
  // The same, to be called all the time: looks now and then.
  Status check();
  // From now on the end of the peer is noticed, or there will be no line.
  bool is_settled() const { return mesh_ == nullptr || is_greeted_; }

 private:
  void open();
  Status listen();

  std::shared_ptr<net::Mesh> mesh_;  // null: the line is over, or never came
  const int32_t peer_;
  std::unique_ptr<net::Stream> stream_;  // null: not there yet
  bool is_greeted_ = false;              // before that the peer's end says nothing
  uint64_t next_look_ = 0;               // ticks
};

}  // namespace hvd::mpi
