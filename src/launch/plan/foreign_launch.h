// foreign_launch.h - jobs that mpirun or jsrun start for us: what is found out about them, the
// command line, and the step into it. One thread; bounded in time.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"
#include "launch/plan/host_sources.h"
#include "launch/plan/plan.h"
#include "launch/plan/plan_json.h"

namespace hvd::launch {

struct ForeignRequest {
  const Options& options;
  const FoundHosts& found;
  const Plan& plan;
};

// None: horovodrun starts the job itself. Asks mpirun for its version; writes nothing.
Result<std::optional<ForeignLaunch>> compose_foreign_launch(const ForeignRequest& request);

// Writes the rank file, if there is one, and becomes the other launcher; returns only if that
// fails.
Status become_foreign_launcher(const ForeignLaunch& launch, const EnvironmentList& environment);

}  // namespace hvd::launch
