// mpi_mesh.h - a Mesh whose streams travel as messages of MPI. Any thread; never blocks. No key and
// no address: the launcher of MPI has brought the processes together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "mpi/group.h"
#include "net/mesh.h"

namespace hvd::mpi {

struct MpiMeshOptions {
  uint64_t epoch = 0;
  std::vector<std::string> hosts{};  // per rank: its name, for messages
  // How long connect() waits for a peer that is to dial us.
  Nanoseconds wait_time = std::chrono::seconds(30);
  // Where the life lines of control streams come from (life_line.h); null: there are none. Shared
  // with the lines.
  std::shared_ptr<net::Mesh> life_lines{};
};

// The group outlives the mesh and its streams.
Result<std::unique_ptr<net::Mesh>> make_mpi_mesh(Group& group, MpiMeshOptions options);

}  // namespace hvd::mpi
