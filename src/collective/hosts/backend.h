// backend.h - works whose members live on several hosts. A blocked work waits for members of this
// host, for the network, or for either: whoever sleeps for it takes any news of this host and the
// descriptors.
#pragma once

#include "collective/backend.h"
#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"
#include "collective/task_runner.h"

namespace hvd::collective::hosts {

// What all backends share that use the streams of a channel: one work at a time, in one order.
class StreamBackend : public Backend {
 public:
  StreamBackend(shared_memory::Link& local, HostLink& hosts) : local_(local), hosts_(hosts) {}

  Progress advance(std::deque<Work*>& queue, std::vector<Work*>& done)
      HVD_REQUIRES(engine_role) override;
  void abandon() HVD_REQUIRES(engine_role) override { runner_.abandon(); }
  shm::Want want() const override { return {}; }
  int awaited_here() const override { return local_.want_member(); }
  std::vector<int> awaited_elsewhere() const override { return hosts_.awaited(); }
  bool spans_hosts() const override { return true; }
  void add_descriptors(std::vector<pollfd>& out) override;
  const Status& status() const override { return hosts_.status(); }

 protected:
  shared_memory::Link& local() { return local_; }
  HostLink& hosts() { return hosts_; }

 private:
  virtual std::unique_ptr<Task> make_task(Work& work) = 0;

  shared_memory::Link& local_;
  HostLink& hosts_;
  TaskRunner runner_;
};

class HostsBackend final : public StreamBackend {
 public:
  using StreamBackend::StreamBackend;
  std::string_view name() const override { return "hosts"; }
  const Capabilities& capabilities() const override;

 private:
  std::unique_ptr<Task> make_task(Work& work) override;
};

}  // namespace hvd::collective::hosts
