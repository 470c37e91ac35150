// large_works.h - the agreed operations of a channel that its data plane runs, in order, and what
// the first of them waits for. Never blocks.
#pragma once

#include <poll.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/engine_role.h"
#include "base/explore.h"
#include "base/status.h"
#include "collective/backends/data_plane.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

class LargeWorks {
 public:
  explicit LargeWorks(std::vector<std::unique_ptr<collective::Backend>> backends)
      : plane_(std::move(backends)) {}

  bool is_idle() const HVD_REQUIRES(engine_role) { return plane_.is_idle(); }
  const collective::DataPlane& plane() const HVD_REQUIRES(engine_role) { return plane_; }
  // Of the work that is first. Not while idle.
  const collective::Backend& current() const HVD_REQUIRES(engine_role) { return plane_.current(); }

  // Gives op.work to a backend. All members choose the same one, or find alike that there is none.
  Status add(Operation& op) HVD_REQUIRES(engine_role);
  // An operation that can neither run nor end: it ends with the channel.
  void hold(Operation& op) HVD_REQUIRES(engine_role) { running_.push_back(&op); }
  // Calls finish(op, status) for each operation that is complete. False: nothing moved.
  template <typename Finish>
  bool advance(const Finish& finish) HVD_REQUIRES(engine_role);
  // Gives up; what was begun or held.
  std::vector<Operation*> abandon() HVD_REQUIRES(engine_role);

  // Whether streams still run works that were reported, and may be waited for before the channel is
  // closed: so long, not for ever.
  bool streams_are_late(TimePoint now) HVD_REQUIRES(engine_role);
  void abort_streams() HVD_REQUIRES(engine_role) { plane_.abort_streams(); }

  // A data stream broke, longer ago than a peer that leaves needs to say so.
  Status broken_stream(TimePoint now) HVD_REQUIRES(engine_role);

 private:
  friend struct explore::Probe;
  Operation& take(const collective::Work& work) HVD_REQUIRES(engine_role);

  collective::DataPlane plane_ HVD_GUARDED_BY(engine_role);
  std::vector<Operation*> running_ HVD_GUARDED_BY(engine_role);  // in the executor, or held
  // Of one advance(); they keep their memory.
  std::vector<collective::Work*> done_ HVD_GUARDED_BY(engine_role);
  std::vector<Operation*> ended_ HVD_GUARDED_BY(engine_role);
  TimePoint stream_broke_ HVD_GUARDED_BY(engine_role) = {};
  TimePoint late_since_ HVD_GUARDED_BY(engine_role) = {};
};

template <typename Finish>
bool LargeWorks::advance(const Finish& finish) {
  const collective::Progress progress = plane_.advance(done_);
  const bool finished_some = !done_.empty();
  for (const collective::Work* work : done_) ended_.push_back(&take(*work));
  done_.clear();
  for (Operation* op : ended_) finish(*op, op->work.status.is_ok() ? op->status : op->work.status);
  ended_.clear();
  return progress != collective::Progress::kBlocked || finished_some;
}

}  // namespace hvd::engine
