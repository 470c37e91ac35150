#include "collective/hosts/tasks.h"

namespace hvd::collective::hosts {

std::unique_ptr<Task> make_task(shared_memory::Link& local, HostLink& hosts, Work& work) {
  switch (work.kind) {
    case WorkKind::kReduce:
    case WorkKind::kReduceShared:
      return make_reduce(local, hosts, work);
    case WorkKind::kExchange:
      return make_exchange(local, hosts, work);
    case WorkKind::kAdasum:
      return make_adasum(local, hosts, work);
    case WorkKind::kFence:
      return make_fence(local, hosts, work);
  }
  return nullptr;
}

}  // namespace hvd::collective::hosts
