// elastic_limits.h - the limits of an elastic job, from the command line and the environment.
// Reads a random seed, nothing else. Any thread.
#pragma once

#include "launch/elastic/policy.h"
#include "launch/options/launch_settings.h"
#include "launch/options/options.h"

namespace hvd::launch {

PolicyLimits policy_limits(const Options& options, const LaunchSettings& settings);

}  // namespace hvd::launch
