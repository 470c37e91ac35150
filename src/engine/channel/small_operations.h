// small_operations.h - operations whose payloads travel with the agreement: what follows from a
// slot for them, what this rank deposits, and their execution by collective/small.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/channel/set_view.h"
#include "engine/operation/cached_operation.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

// Fills in what the engine derives from a plan: deposits, and from which limit on it is small.
// `default_limit` is the channel's own, whatever it is tuned to.
void derive(CachedOperation& slot, const SetView& set, uint32_t default_limit);

// Writes what this rank deposits.
void write_deposit(const Operation& op, const wire::Request& request, const SetView& set,
                   std::byte* to);

// payloads[r] is what rank r deposited (null: joined); the own entry is not read.
void run_small_operation(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads);

// The same for the plainest of all: one tensor, no wire type, no pre-scaling, nobody joined, output
// given.
void run_plain_allreduce(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads);

}  // namespace hvd::engine
