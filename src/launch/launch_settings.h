// launch_settings.h - the variables that horovodrun itself obeys, read once. Pure; any thread.
//   HOROVOD_TERMINATION_GRACE_SECONDS  float, default 5: from SIGTERM to SIGKILL
//   HOROVOD_START_TIMEOUT              whole seconds: stands in for --start-timeout
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "launch/environment_list.h"

namespace hvd::launch {

struct LaunchSettings {
  Nanoseconds termination_grace = std::chrono::seconds(5);
  std::optional<std::chrono::seconds> start_timeout;
};

Result<LaunchSettings> read_launch_settings(const EnvironmentList& environment);

}  // namespace hvd::launch
