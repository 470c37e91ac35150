// decide.h - `horovodrun --decide`: the policy of elastic jobs for workers that others start, and
// the store where these find each other. Ray and Spark say what happens (decide_lines.h) and carry
// out what is decided. One thread; blocks in poll() until the job is over or standard input ends.
#pragma once

#include "base/status.h"
#include "launch/options/options.h"
#include "launch/os/environment_list.h"

namespace hvd::launch {

// The exit code. HOROVOD_KEY_FD holds the key of the job, whose name and workers are the driver's
// business.
Result<int> run_decide(const Options& options, const EnvironmentList& environment);

}  // namespace hvd::launch
