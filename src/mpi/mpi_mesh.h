// mpi_mesh.h - a Mesh whose streams travel as messages of MPI, or only those for numbers, where a
// mesh beside it carries control and objects. Any thread; never blocks.
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
  // Carries control and objects, which MPI would not protect; null: MPI carries them, too.
  std::unique_ptr<net::Mesh> beside{};
  // Where the life lines of control streams come from of MPI (life_line.h); null: there are none.
  // Shared with the lines.
  std::shared_ptr<net::Mesh> life_lines{};
};

// The group outlives the mesh and its streams.
Result<std::unique_ptr<net::Mesh>> make_mpi_mesh(Group& group, MpiMeshOptions options);

}  // namespace hvd::mpi
