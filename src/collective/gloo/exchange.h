// exchange.h - the exchanges of a work as calls of a group. Blocks: runs on the group's worker,
// which has the work's memory for that time.
#pragma once

#include <optional>

#include "base/status.h"
#include "collective/gloo/group.h"
#include "collective/gloo/scratch.h"
#include "collective/work.h"

namespace hvd::collective::gloo {

Status run_exchange(Group& group, Scratch& scratch, const Work& work);

// The one member whose block goes to all, if there is only one: a broadcast. Pure.
std::optional<int> only_sender(const Exchange& exchange);

}  // namespace hvd::collective::gloo
