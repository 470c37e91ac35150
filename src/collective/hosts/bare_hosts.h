// bare_hosts.h - the collective layer over several hosts alone: blocking calls, without names,
// negotiation or engine. For benchmarks that compare it with bare MPI calls, and for tests. Every
// member must call the same functions in the same order. One thread per group. Waits 60 s at most.
#pragma once

#include <vector>

#include "base/dtype.h"
#include "collective/hosts/host_link.h"
#include "collective/shared_memory/link.h"
#include "collective/work.h"
#include "shm/job.h"

namespace hvd::collective::hosts {

class BareHosts {
 public:
  // `job` holds the members of this host, in the order of the layout; its channel pool is used from
  // its beginning.
  BareHosts(shm::Job& job, net::Mesh& mesh, HostLinkOptions options);

  // In place.
  Status allreduce(void* data, size_t count, DType dtype, ReduceOp op);
  Status barrier();
  // Any work; its own status, or why it could not be finished.
  Status run(Work& work);

  // Looks before it yields the processor; 0 where members outnumber the cores.
  void set_spin_count(int count) { spins_ = count; }

  HostLink& hosts() { return hosts_; }
  shared_memory::Link& local() { return local_; }

 private:
  Status wait_for_news();

  const std::vector<int> local_ranks_;
  shared_memory::Link local_;
  HostLink hosts_;
  Work work_;
  int spins_;
};

}  // namespace hvd::collective::hosts
