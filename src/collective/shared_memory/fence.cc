// All members come, member 0 does something alone, all go on.
#include "collective/shared_memory/tasks.h"

namespace hvd::collective::shared_memory {
namespace {

class Fence final : public Task {
 public:
  Fence(Link& link, Work& work) : link_(link), work_(work) {}

  Progress advance() HVD_REQUIRES(engine_role) override {
    if (stage_ == 0) {
      link_.post_ready(link_.step + 1);
      stage_ = 1;
    }
    if (stage_ == 1 && link_.me() == 0) {
      if (!link_.all_ready(link_.step + 1)) return Progress::kBlocked;
      if (work_.leader_action) work_.status = work_.leader_action();
    } else if (stage_ == 1 && !link_.has_result(0, link_.step + 1)) {
      return Progress::kBlocked;
    }
    if (stage_ == 1) {
      link_.post_result(link_.step + 1);
      ++link_.step;
      stage_ = 2;
    }
    return Progress::kDone;
  }

 private:
  Link& link_;
  Work& work_;
  int stage_ = 0;
};

}  // namespace

std::unique_ptr<Task> make_fence(Link& link, Work& work) {
  return std::make_unique<Fence>(link, work);
}

}  // namespace hvd::collective::shared_memory
