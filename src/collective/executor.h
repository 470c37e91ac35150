// executor.h - runs the agreed large works of one channel, in order, each by the backend that was
// selected for it. Never blocks.
#pragma once

#include <deque>
#include <vector>

#include "collective/backend.h"

namespace hvd::collective {

class Executor {
 public:
  void add(Work& work, Backend& backend) HVD_REQUIRES(engine_role) {
    work.backend = &backend;
    queue_.push_back(&work);
  }
  bool is_idle() const { return queue_.empty() && running_ == nullptr; }
  // Advances what is first. Finished works are appended to `done`, in order. kDone: nothing is
  // left.
  Progress advance(std::vector<Work*>& done) HVD_REQUIRES(engine_role);
  // Gives up: nothing is touched any more.
  void abandon() HVD_REQUIRES(engine_role);
  // Whose work is first; null if it is idle.
  Backend* current() const {
    return running_ != nullptr || queue_.empty() ? running_ : queue_.front()->backend;
  }

 private:
  std::deque<Work*> queue_;
  Backend* running_ = nullptr;  // has begun works of its own
};

}  // namespace hvd::collective
