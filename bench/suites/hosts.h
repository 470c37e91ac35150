// suite_hosts.h - allreduce over two hosts that are joined by a link: us, Open MPI and Gloo.
// Collective; one thread.
#pragma once

#include <string>
#include <vector>

#include "contest.h"
#include "mpi_peer.h"

namespace hvd::bench {

struct HostsOptions {
  int per_host = 1;
  std::string link;       // its name in the table: veth, 1gbit, 10gbit
  double wire_mbits = 0;  // of a slow link: what TCP can carry one way; 0: not limited
  double both_mbits = 0;  // what TCP carries in each direction when both are busy; 0: not known
  std::string interface;  // on every host
  std::string directory;  // empty, seen by all ranks
  std::string job_id;
  std::string key_file;
  std::string store_address;
  int store_port = 0;
  std::string engine = "native";  // or mpi, gloo; protection: engines that differ in HOROVOD_TLS
  std::string python,
      objects;  // an interpreter and python/benchlib/objects_worker.py; empty: left out
  std::string mpi_name;
  int cores = 1;
  bool quick = false;
};

// mpirun sees two machines and would bind both ranks to the first core.
void use_own_core(int rank);

std::vector<CaseReadings> run_hosts(const World& world, const HostsOptions& options);

}  // namespace hvd::bench
