// host_lane.h - runs works in host memory with the backends of the channel, for a backend that uses
// them as its own means. In order.
#pragma once

#include <deque>
#include <vector>

#include "collective/executor.h"
#include "collective/select.h"

namespace hvd::collective::gpu {

class HostLane {
 public:
  explicit HostLane(std::vector<Backend*> backends) : backends_(std::move(backends)) {
    for (Backend* backend : backends_)
      candidates_.push_back({backend->name(), &backend->capabilities()});
  }
  Status add(Work& work) HVD_REQUIRES(engine_role) {
    const auto chosen = select(traits_of(work), candidates_);
    if (!chosen)
      return Status(StatusCode::kPreconditionError, explain_route(traits_of(work), candidates_));
    executor_.add(work, *backends_[*chosen]);
    return Status::ok();
  }
  bool is_idle() const { return executor_.is_idle(); }
  Progress advance(std::vector<Work*>& done) HVD_REQUIRES(engine_role) {
    return executor_.advance(done);
  }
  void abandon() HVD_REQUIRES(engine_role) { executor_.abandon(); }
  // Whose work is first; null if it is idle.
  Backend* current() const { return executor_.current(); }

 private:
  const std::vector<Backend*> backends_;
  std::vector<Candidate> candidates_;
  Executor executor_;
};

}  // namespace hvd::collective::gpu
