// launcher.h - what each launcher tells its processes through the environment. Pure; any thread.
// Gives values only: it neither guesses what is missing nor checks how the parts fit together.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "topology/variables.h"

namespace hvd::topology {

struct LauncherFacts {
  Position world{};
  std::optional<Position> local{}, cross{};
  std::string hostname{};  // empty: the launcher gives none
  std::string job_name{};  // empty: the launcher gives nothing that names the job
};

// The innermost launcher that the environment speaks of; none: the process was started alone.
Result<std::optional<LauncherFacts>> launcher_facts(const Environment& environment);

}  // namespace hvd::topology
