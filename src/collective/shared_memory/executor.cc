#include "collective/shared_memory/executor.h"

namespace hvd::collective::shared_memory {

std::unique_ptr<Task> Executor::make_task(Work& work) {
  if (maker_) return maker_(work);
  switch (work.kind) {
    case WorkKind::kReduce:
      return make_staged_reduce(link_, work);
    case WorkKind::kReduceShared:
      return make_shared_reduce(link_, work);
    case WorkKind::kExchange:
      return make_exchange(link_, work);
    case WorkKind::kAdasum:
      return make_adasum(link_, work);
    case WorkKind::kFence:
      return make_fence(link_, work);
  }
  return nullptr;
}

Progress Executor::advance(std::vector<Work*>& done) {
  if (task_ == nullptr) {
    const bool streams = !maker_ && !queue_.empty() && queue_.front()->kind == WorkKind::kReduce &&
                         link_.size() == 2;
    if (!pair_.is_idle() || streams) {
      const Progress progress = pair_.advance(queue_, done);
      return progress == Progress::kDone && !queue_.empty() ? Progress::kAdvanced : progress;
    }
    if (queue_.empty()) return Progress::kDone;
    current_ = queue_.front();
    queue_.pop_front();
    task_ = make_task(*current_);
  }
  const Progress progress = task_->advance();
  if (progress != Progress::kDone) return progress;
  task_.reset();
  done.push_back(current_);
  return queue_.empty() ? Progress::kDone : Progress::kAdvanced;
}

void Executor::abandon() {
  queue_.clear();
  task_.reset();
  pair_.abandon();
}

}  // namespace hvd::collective::shared_memory
