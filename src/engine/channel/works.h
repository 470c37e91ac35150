// works.h - from an agreed slot and an operation's buffers to what the data plane runs. Pure apart
// from output memory.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/numeric.h"
#include "engine/channel/set_view.h"
#include "engine/operation/cached_operation.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

collective::Numeric numeric_of(const wire::Request& request, DType dtype, int set_size);

// Bytes of a row, and where the rows of each rank begin, with the end of the last.
uint64_t row_bytes(const CachedOperation& slot, size_t tensor);
std::vector<uint64_t> row_offsets(const CachedOperation& slot, size_t tensor);

// Describes a large operation to the data plane in op.work.
void build_work(Operation& op, const CachedOperation& slot, const SetView& set);

}  // namespace hvd::engine
