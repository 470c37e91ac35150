#include "engine/channel/large_works.h"

#include <utility>

namespace hvd::engine {

Status LargeWorks::add(Operation& op) {
  running_.push_back(&op);
  Status status = plane_.add(op.work);
  if (HVD_UNLIKELY(!status.is_ok())) std::erase(running_, &op);
  return status;
}

// The operation that a work is part of; it runs no longer.
Operation& LargeWorks::take(const collective::Work& work) {
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const Operation* op) { return &op->work == &work; });
  HVD_ASSERT(at != running_.end(), "the data plane gives back what it was given");
  Operation& op = **at;
  running_.erase(at);
  return op;
}

std::vector<Operation*> LargeWorks::abandon() {
  plane_.abandon();
  return std::exchange(running_, {});
}

bool LargeWorks::streams_are_late(TimePoint now) {
  constexpr auto kLongest = std::chrono::seconds(10);
  if (!plane_.look_after_streams()) {
    late_since_ = {};
    return false;
  }
  if (late_since_ == TimePoint{}) late_since_ = now;
  return now - late_since_ < kLongest;
}

Status LargeWorks::broken_stream(TimePoint now) {
  constexpr auto kGrace = std::chrono::milliseconds(500);
  (void)plane_.look_after_streams();
  if (plane_.status().is_ok()) return Status::ok();
  if (stream_broke_ == TimePoint{}) stream_broke_ = now;
  return now - stream_broke_ < kGrace ? Status::ok() : plane_.status();
}

}  // namespace hvd::engine
