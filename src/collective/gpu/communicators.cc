#include "collective/gpu/communicators.h"

namespace hvd::collective::gpu {

Result<bool> Communicators::meet(const NcclApi& api) {
  for (;;) {
    HVD_TRY_ASSIGN(const bool has_met, are_ready());
    if (!has_met || planned_.empty()) return has_met;
    const Plan next = planned_.front();
    planned_.pop_front();
    HVD_TRY_ASSIGN(Communicator comm, Communicator::begin(api, next.place, next.id));
    made_[static_cast<size_t>(next.reach)].emplace(std::move(comm));
  }
}

Result<bool> Communicators::are_ready() const {
  bool all = true;
  for (const auto& comm : made_) {
    if (!comm) continue;
    HVD_TRY_ASSIGN(const bool is_ready, comm->is_ready());
    all = all && is_ready;
  }
  return all;
}

void Communicators::abort() {
  for (auto& comm : made_) {
    if (comm) comm->abort();
  }
}

}  // namespace hvd::collective::gpu
