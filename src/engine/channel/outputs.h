// outputs.h - where an operation writes: shapes and memory of its outputs.
#pragma once

#include "engine/channel/set_view.h"
#include "engine/operation/cached_operation.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

// A failure to allocate becomes op.status, and the output is dropped.
void prepare_outputs(Operation& op, const CachedOperation& slot, const SetView& set);

}  // namespace hvd::engine
