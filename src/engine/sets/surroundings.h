// surroundings.h - what an engine was given when it started: who it is in the job, its settings,
// the shared segment and the ways to other hosts. Nothing of it changes while the engine lives; its
// parts outlive everything that an engine makes itself.
#pragma once

#include <cstdint>
#include <memory>

#include "base/settings.h"
#include "collective/gloo/domain.h"
#include "net/mesh.h"
#include "shm/job.h"
#include "topology/hosts.h"
#include "topology/topology.h"

namespace hvd::engine {

struct Surroundings {
  uint64_t engine_number = 0;  // among the engines of this process
  uint64_t epoch = 1;          // of the worlds that the processes of the job have formed
  topology::Topology topology;
  Settings settings;
  std::unique_ptr<shm::Job> job;
  topology::HostMap hosts;                         // empty: one host
  std::unique_ptr<net::Mesh> mesh;                 // null: one host
  std::unique_ptr<collective::gloo::Domain> gloo;  // null: it does not carry the data

  int32_t rank() const { return topology.rank; }
  bool spans_hosts() const { return mesh != nullptr; }
};

}  // namespace hvd::engine
