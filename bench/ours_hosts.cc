#include "ours_hosts.h"

#include <horovod/hvd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "ours.h"

namespace hvd::bench {
namespace {

// The epoch of the bare layer; the engine counts its own from 1.
constexpr uint64_t kLayerEpoch = 1000;

hvd_topology topology_of(const HostsPlace& place) {
  return {.rank = place.rank,
          .size = place.size,
          .local_rank = place.rank % place.per_host,
          .local_size = place.per_host,
          .cross_rank = place.rank / place.per_host,
          .cross_size = place.size / place.per_host};
}

topology::Topology host_topology(const HostsPlace& place) {
  const hvd_topology t = topology_of(place);
  topology::Topology topology;
  topology.rank = t.rank;
  topology.size = t.size;
  topology.local_rank = t.local_rank;
  topology.local_size = t.local_size;
  topology.cross_rank = t.cross_rank;
  topology.cross_size = t.cross_size;
  topology.hostname = "host" + std::to_string(t.cross_rank);
  topology.job_id = place.job_id + "-layer";
  return topology;
}

void use_store(const HostsPlace& place, int port) {
  setenv("HOROVOD_KEY_FILE", place.key_file.c_str(), 1);
  setenv("HOROVOD_RENDEZVOUS_ADDR", place.store_address.c_str(), 1);
  setenv("HOROVOD_RENDEZVOUS_PORT", std::to_string(port).c_str(), 1);
}

template <typename T>
T take(Result<T> result, const char* what) {
  expect_ok(result.status(), what);
  return std::move(*result);
}

}  // namespace

OursOnHosts::OursOnHosts(const HostsPlace& place) {
  const hvd_topology topology = topology_of(place);
  use_store(place, place.store_port);
  network_ = take(bootstrap::join_network(host_topology(place), process_environment(), kLayerEpoch,
                                          Deadline::after(std::chrono::seconds(30))),
                  "network of the layer");
  shm::JobOptions job;
  job.rank = topology.local_rank;
  job.size = topology.local_size;
  job.job_id = place.job_id + "-layer-" + std::to_string(topology.cross_rank);
  job_ = take(shm::Job::meet(job), "segment of the layer");
  std::vector<int32_t> ranks;
  for (int rank = 0; rank < place.size; ++rank) ranks.push_back(rank);
  const std::vector<int32_t>& host_of = network_.hosts.host_of;
  layer_ = std::make_unique<collective::hosts::BareHosts>(
      *job_, *network_.mesh,
      collective::hosts::HostLinkOptions{
          .layout = collective::hosts::HostLayout::of({host_of.begin(), host_of.end()}),
          .me = place.rank,
          .channel = 0,
          .global_ranks = ranks});

  use_store(place, place.store_port + 1);
  // mpirun has started this job, but only the engine over MPI shall use it.
  const bool over_mpi = place.engine == "mpi";
  setenv("HOROVOD_CONTROLLER", over_mpi ? "mpi" : "native", 1);
  setenv("HOROVOD_CPU_OPERATIONS", place.engine.c_str(), 1);
  const std::string job_id = place.job_id + "-engine";
  hvd_init_options options;
  hvd_init_options_init(&options);
  options.topology = topology;
  options.job_id = job_id.c_str();
  expect_ok(hvd_init(&options), "init");
}

OursOnHosts::~OursOnHosts() { (void)hvd_shutdown(); }

}  // namespace hvd::bench
