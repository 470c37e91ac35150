#include "collective/shared_memory/backend.h"

namespace hvd::collective::shared_memory {

const Capabilities& SharedMemoryBackend::capabilities() const {
  static const Capabilities kTable = {{.kind = WorkKind::kReduce},
                                      {.kind = WorkKind::kReduceShared},
                                      {.kind = WorkKind::kExchange},
                                      {.kind = WorkKind::kAdasum},
                                      {.kind = WorkKind::kFence}};
  return kTable;
}

std::unique_ptr<Task> SharedMemoryBackend::make_task(Work& work) {
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

Progress SharedMemoryBackend::advance(std::deque<Work*>& queue, std::vector<Work*>& done) {
  if (runner_.is_idle() && (!pair_.is_idle() || pair_.takes_first(queue))) {
    const Progress progress = pair_.advance(queue, done);
    const bool has_more = !queue.empty() && queue.front()->backend == this;
    return progress == Progress::kDone && has_more ? Progress::kAdvanced : progress;
  }
  return advance_tasks(runner_, *this, queue, done, [this](Work& work) { return make_task(work); });
}

void SharedMemoryBackend::abandon() {
  runner_.abandon();
  pair_.abandon();
}

}  // namespace hvd::collective::shared_memory
