// run_job.h - carries out a plan: start, supervise, report. Blocks until the job has ended.
// One thread, once per process.
#pragma once

#include "base/status.h"
#include "launch/output/console.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {

// The exit code of the job; a failure if the launcher could not go on. `program` is the path of the
// command on this host (unused if no rank runs here).
Result<int> run_job(const Prepared& prepared, const std::string& program, Terminal& terminal);

}  // namespace hvd::launch
