#include "bindings/common/name_queue.h"

#include "bindings/common/call.h"

namespace hvd::bindings {

NameQueue& NameQueue::instance() {
  static NameQueue* const the_queue = new NameQueue;
  return *the_queue;
}

bool NameQueue::enter(Call& call) {
  const std::lock_guard lock(mutex_);
  std::vector<Call*>& queue = waiting_[call.queue()];
  queue.push_back(&call);
  return queue.size() == 1;
}

Call* NameQueue::leave(Call& call) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(call.queue());
  if (found == waiting_.end() || found->second.front() != &call) return nullptr;
  found->second.erase(found->second.begin());
  if (!found->second.empty()) return found->second.front();
  waiting_.erase(found);
  return nullptr;
}

}  // namespace hvd::bindings
