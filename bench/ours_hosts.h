// ours_hosts.h - the library as a benchmark over several hosts uses it: the layer between hosts
// alone, over the real network of a job, and the engine behind the C ABI. Needs one thread.
#pragma once

#include <memory>
#include <string>

#include "bootstrap/join_network.h"
#include "collective/hosts/bare_hosts.h"
#include "shm/job.h"

namespace hvd::bench {

struct HostsPlace {
  int rank = 0;
  int size = 2;
  int per_host = 1;
  std::string job_id;         // the same on all ranks, unique on the machine
  std::string key_file;       // readable on all hosts
  std::string store_address;  // of rank 0's host
  int store_port = 0;         // this one and the next are free there
  std::string engine;         // HOROVOD_CPU_OPERATIONS: native or mpi
};

class OursOnHosts {
 public:
  explicit OursOnHosts(const HostsPlace& place);
  ~OursOnHosts();
  OursOnHosts(const OursOnHosts&) = delete;
  OursOnHosts& operator=(const OursOnHosts&) = delete;

  collective::hosts::BareHosts& layer() { return *layer_; }

 private:
  bootstrap::Network network_;
  std::unique_ptr<shm::Job> job_;
  std::unique_ptr<collective::hosts::BareHosts> layer_;
};

}  // namespace hvd::bench
