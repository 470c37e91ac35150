// backend.h - reductions and exchanges of a channel on several hosts through Gloo. The members
// connect with the first work. A work runs on the worker's thread, and a blocked one waits for its
// descriptor. It shares the streams of collective/hosts, and with them their order. Nothing
// blocks, except that abandon() waits until Gloo has let go of the work's memory.
#pragma once

#include <memory>

#include "collective/gloo/domain.h"
#include "collective/gloo/group.h"
#include "collective/gloo/meeting.h"
#include "collective/gloo/scratch.h"
#include "collective/gloo/worker.h"
#include "collective/hosts/backend.h"

namespace hvd::collective::gloo {

class GlooBackend final : public hosts::StreamBackend {
 public:
  GlooBackend(shared_memory::Link& local, hosts::HostLink& hosts, Domain& domain);
  ~GlooBackend() override;

  std::string_view name() const override { return "gloo"; }
  std::string_view activity() const override { return "GLOO"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  void abandon() HVD_REQUIRES(engine_role) override;
  // Gloo does not say for whom it waits: for each in turn, so that none is left asleep.
  int awaited_here() const override;
  std::vector<int> awaited_elsewhere() const override;
  void add_descriptors(std::vector<pollfd>& out) override;
  const Status& status() const override;

 private:
  class GlooTask;
  std::unique_ptr<Task> make_task(Work& work) override;
  // kDone: connected. A failure stays in failure_, and the work blocked.
  Progress connect() HVD_REQUIRES(engine_role);
  Progress run(Work& work) HVD_REQUIRES(engine_role);
  Progress fail(const Status& failure);

  Domain& domain_;
  const hosts::HostLayout& layout_;
  const int my_host_, members_here_;
  const Capabilities capabilities_;
  std::unique_ptr<Group> group_;
  std::unique_ptr<Meeting> meeting_;
  Deadline connect_deadline_ = Deadline::never();
  bool is_connected_ = false;
  Scratch scratch_;
  Status failure_;
  mutable int next_here_ = 0;
  Worker worker_;  // last: its call uses the others
};

}  // namespace hvd::collective::gloo
