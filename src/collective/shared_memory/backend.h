// backend.h - works of members that share memory, all on this host.
#pragma once

#include "collective/backend.h"
#include "collective/shared_memory/pair_stream.h"
#include "collective/task_runner.h"

namespace hvd::collective::shared_memory {

class SharedMemoryBackend final : public Backend {
 public:
  explicit SharedMemoryBackend(Link& link) : link_(link), pair_(link, *this) {}

  std::string_view name() const override { return "shared_memory"; }
  const Capabilities& capabilities() const override;
  Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done)
      HVD_REQUIRES(engine_role) override;
  void abandon() HVD_REQUIRES(engine_role) override;
  shm::Want want() const override { return link_.want(); }
  int awaited_here() const override { return link_.want_member(); }
  std::vector<int> awaited_elsewhere() const override { return {}; }
  bool spans_hosts() const override { return false; }
  void add_descriptors(std::vector<pollfd>& /*out*/) override {}  // nobody here is behind one
  const Status& status() const override { return status_; }

 private:
  std::unique_ptr<Task> make_task(Work& work);

  Link& link_;
  PairStream pair_;
  TaskRunner runner_;
  const Status status_;  // memory does not fail
};

}  // namespace hvd::collective::shared_memory
