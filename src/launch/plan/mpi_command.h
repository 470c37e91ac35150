// mpi_command.h - the mpirun line of --mpi, for every MPI whose options we know. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"
#include "launch/plan/hosts.h"

namespace hvd::launch {

// kOpenMpi: up to version 4; from 5 on its flags have other forms.
enum class MpiImplementation { kOpenMpi, kOpenMpi5, kSpectrumMpi, kMpich, kIntelMpi };

// By what `mpirun --version` prints; none: not one that we know.
std::optional<MpiImplementation> recognise_mpi(std::string_view version_text);
std::string_view mpi_name(MpiImplementation implementation);

// From here on mpirun must not start its daemons through each other.
inline constexpr size_t kLargeClusterHosts = 64;

struct MpiRequest {
  MpiImplementation implementation;
  const Options& options;
  std::span<const HostSlots> hosts;  // as they were named: mpirun takes the list as it is
  int32_t num_proc;
  const EnvironmentList& environment;  // of the workers
};

// One line for /bin/sh.
Result<std::string> mpi_command_line(const MpiRequest& request);

// Variables that describe the launcher's own session and stay with it.
bool is_exportable(std::string_view entry);

}  // namespace hvd::launch
