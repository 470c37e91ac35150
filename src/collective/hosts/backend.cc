#include "collective/hosts/backend.h"

#include "collective/hosts/tasks.h"

namespace hvd::collective::hosts {

Progress StreamBackend::advance(std::deque<Work*>& queue, std::vector<Work*>& done) {
  return advance_tasks(runner_, *this, queue, done, [this](Work& work) { return make_task(work); });
}

void StreamBackend::add_descriptors(std::vector<pollfd>& out) {
  for (const HostLink::Want& want : hosts_.wants())
    out.push_back({want.descriptor, want.events, 0});
}

const Capabilities& HostsBackend::capabilities() const {
  static const Capabilities kTable = {{.kind = WorkKind::kReduce},
                                      {.kind = WorkKind::kExchange},
                                      {.kind = WorkKind::kAdasum},
                                      {.kind = WorkKind::kFence}};
  return kTable;
}

std::unique_ptr<Task> HostsBackend::make_task(Work& work) {
  return hosts::make_task(local(), hosts(), work);
}

}  // namespace hvd::collective::hosts
