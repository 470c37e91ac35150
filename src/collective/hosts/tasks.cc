#include "collective/hosts/tasks.h"

namespace hvd::hosts {

std::unique_ptr<native::Task> make_task(native::Link& local, HostLink& hosts, native::Work& work) {
  switch (work.kind) {
    case native::WorkKind::kReduce:
    case native::WorkKind::kReduceShared:
      return make_reduce(local, hosts, work);
    case native::WorkKind::kExchange:
      return make_exchange(local, hosts, work);
    case native::WorkKind::kAdasum:
      return make_adasum(local, hosts, work);
    case native::WorkKind::kFence:
      return make_fence(local, hosts, work);
  }
  return nullptr;
}

}  // namespace hvd::hosts
