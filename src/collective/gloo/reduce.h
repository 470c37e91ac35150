// reduce.h - the runs of a reduction as calls of a group. Blocks: runs on the group's worker, which
// has the work's memory for that time.
#pragma once

#include "base/status.h"
#include "collective/gloo/group.h"
#include "collective/gloo/scratch.h"
#include "collective/work.h"

namespace hvd::collective::gloo {

Status run_reduce(Group& group, Scratch& scratch, const Work& work);

}  // namespace hvd::collective::gloo
