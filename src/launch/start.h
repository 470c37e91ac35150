// start.h - carries out a plan: pipes, files and processes for every rank, or nothing at all.
// One thread; does not block.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/descriptor_limit.h"
#include "launch/plan.h"
#include "launch/signals.h"
#include "launch/supervisor.h"

namespace hvd::launch {

struct StartRequest {
  const Plan& plan;
  const std::string& program;               // path of the executable
  const std::vector<std::string>& command;  // its argv
  LineStamp stamp;
};

// If a rank cannot be started, those before it are killed.
Result<Job> start_job(const StartRequest& request, const Signals& signals,
                      const DescriptorLimit& limit);

// For a job that cannot be supervised: SIGKILL to all groups; waits for the workers.
void kill_job(const Job& job);

}  // namespace hvd::launch
