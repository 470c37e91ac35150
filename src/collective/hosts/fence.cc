// All members of all hosts come; the first member of each host acts alone; all go on when the
// action is done on every host, since a rank that goes on may be heard on all of them.
#include <vector>

#include "collective/hosts/tasks.h"

namespace hvd::collective::hosts {
namespace {

class Fence final : public Task {
 public:
  Fence(shared_memory::Link& local, HostLink& hosts, Work& work)
      : local_(local), hosts_(hosts), work_(work) {
    hosts.begin_work(static_cast<uint32_t>(work.kind), 0);
    local_.post_ready(local_.step + 1);
  }

  Progress advance() HVD_REQUIRES(engine_role) override {
    if (local_.me() != 0) {
      if (!local_.has_result(0, local_.step + 1)) return Progress::kBlocked;
      return leave();
    }
    if (stage_ == Stage::kCome) {
      if (!local_.all_ready(local_.step + 1)) return Progress::kBlocked;
      tell_hosts();
      stage_ = Stage::kAllHere;
    }
    if (stage_ == Stage::kAllHere) {
      if (!have_hosts_told()) return Progress::kBlocked;
      if (work_.leader_action) work_.status = work_.leader_action();
      tell_hosts();
      stage_ = Stage::kAllActed;
    }
    if (!have_hosts_told()) return Progress::kBlocked;
    return leave();
  }

 private:
  enum class Stage { kCome, kAllHere, kAllActed };

  Progress leave() HVD_REQUIRES(engine_role) {
    local_.post_result(local_.step + 1);
    ++local_.step;
    return Progress::kDone;
  }

  // One byte to and from the first member of every other host.
  void tell_hosts() {
    const HostLayout& layout = hosts_.layout();
    marks_.assign(static_cast<size_t>(layout.host_count()), 0);
    for (int host = 0; host < layout.host_count(); ++host) {
      if (host == hosts_.my_host()) continue;
      const int leader = layout.on_host(host)[0];
      hosts_.queue_send(leader, &token_, 1);
      marks_[static_cast<size_t>(host)] = hosts_.queue_receive(leader, nullptr, 1);
    }
  }

  bool have_hosts_told() HVD_REQUIRES(engine_role) {
    hosts_.pump();
    const HostLayout& layout = hosts_.layout();
    for (int host = 0; host < layout.host_count(); ++host) {
      if (host != hosts_.my_host() &&
          !hosts_.has_received(layout.on_host(host)[0], marks_[static_cast<size_t>(host)]))
        return false;
    }
    return hosts_.has_sent_all();
  }

  shared_memory::Link& local_;
  HostLink& hosts_;
  Work& work_;
  Stage stage_ = Stage::kCome;
  const std::byte token_{1};
  std::vector<uint64_t> marks_;
};

}  // namespace

std::unique_ptr<Task> make_fence(shared_memory::Link& local, HostLink& hosts, Work& work) {
  return std::make_unique<Fence>(local, hosts, work);
}

}  // namespace hvd::collective::hosts
