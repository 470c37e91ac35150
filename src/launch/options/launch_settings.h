// launch_settings.h - the variables that horovodrun itself obeys, read once. Pure; any thread.
//   HOROVOD_TERMINATION_GRACE_SECONDS  float, default 5: from SIGTERM to SIGKILL
//   HOROVOD_START_TIMEOUT              whole seconds: stands in for --start-timeout
//   HOROVOD_ELASTIC_TIMEOUT            whole seconds: stands in for --elastic-timeout
//   HOROVOD_ELASTIC_READY_SECONDS      float, default 60: how long members of a world that broke
//                                      may keep others waiting before they are killed
//   HOROVOD_ELASTIC_DISCOVERY_SECONDS  float, default 1: how often hosts are asked for
//   HOROVOD_REMOTE_EXECUTABLE          horovodrun on other hosts; default: where it is here
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

inline constexpr std::chrono::seconds kDefaultStartTimeout{30};
inline constexpr std::chrono::seconds kDefaultElasticTimeout{600};

struct LaunchSettings {
  Nanoseconds termination_grace = std::chrono::seconds(5);
  std::optional<std::chrono::seconds> start_timeout = {};
  std::optional<std::chrono::seconds> elastic_timeout = {};
  Nanoseconds elastic_ready_time = std::chrono::seconds(60);
  Nanoseconds discovery_period = std::chrono::seconds(1);
  std::string remote_executable = {};  // empty: as here
};

Result<LaunchSettings> read_launch_settings(const EnvironmentList& environment);

}  // namespace hvd::launch
