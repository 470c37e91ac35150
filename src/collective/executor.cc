#include "collective/executor.h"

namespace hvd::collective {

Progress Executor::advance(std::vector<Work*>& done) {
  running_ = current();
  if (running_ == nullptr) return Progress::kDone;
  const Progress progress = running_->advance(queue_, done);
  if (progress != Progress::kDone) return progress;
  running_ = nullptr;
  return queue_.empty() ? Progress::kDone : Progress::kAdvanced;
}

void Executor::abandon() {
  queue_.clear();
  if (running_ != nullptr) running_->abandon();
  running_ = nullptr;
}

}  // namespace hvd::collective
