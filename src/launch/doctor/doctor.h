// doctor.h - `horovodrun doctor`: looks at every host through an agent there, lets them measure
// each other, and prints what was found and what to do about it. Blocks, within bounds. One thread,
// once per process.
#pragma once

#include "base/status.h"
#include "launch/output/console.h"
#include "launch/plan/prepare.h"

namespace hvd::launch {

// Like prepare_job, but every host gets a rank, so that none is left out.
Result<Prepared> prepare_doctor(Options options, const EnvironmentList& environment);

// 0: everything that was asked for can be used; 1: something cannot.
Result<int> run_doctor(const Prepared& prepared, Terminal& terminal);

}  // namespace hvd::launch
