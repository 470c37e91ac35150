// launcher.h - what each launcher tells its processes through the environment. Pure; any thread.
// Gives values only: it neither guesses what is missing nor checks how the parts fit together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "topology/topology.h"
#include "topology/variables.h"

namespace hvd::topology {

// Files that a launcher leaves beside the environment; nullopt: there is no such file.
using FileReader = std::function<std::optional<std::string>(const std::string& path)>;
FileReader file_reader();  // of this machine

struct LauncherFacts {
  Launcher launcher = Launcher::kByHand;
  Position world{};
  std::optional<Position> local{}, cross{};
  std::string hostname{};    // empty: the launcher gives none
  std::string job_name{};    // empty: the launcher gives nothing that names the job
  std::string first_host{};  // where rank 0 runs, as the other hosts can call it; empty: not known
  uint16_t store_port = 0;   // 0: none that all ranks would choose alike
};

// The innermost launcher that the environment speaks of; none: the process was started alone.
Result<std::optional<LauncherFacts>> launcher_facts(const Environment& environment,
                                                    const FileReader& files);

// topology_from_environment with given files, for tests.
Result<Topology> topology_from(const Environment& environment, const FileReader& files);

}  // namespace hvd::topology
