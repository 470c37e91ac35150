// works.h - from an agreed slot and an operation's buffers to what the data plane runs. Pure apart
// from output memory.
#pragma once

#include <cstdint>

#include "collective/hosts/layout.h"
#include "collective/numeric.h"
#include "engine/operation/cached_operation.h"
#include "engine/operation/operation.h"

namespace hvd::engine {

// The set as the data plane sees it.
struct SetView {
  int size;
  int me;  // set rank
  const std::vector<int32_t>* global_ranks;
  // Where members of several hosts share some of them, and so are combined host by host; else null.
  const collective::hosts::HostLayout* hosts = nullptr;
};

collective::Numeric numeric_of(const wire::Request& request, DType dtype, int set_size);

// Fills in what the engine derives from a plan: deposits, and from which limit on it is small.
// `default_limit` is the channel's own, whatever it is tuned to.
void derive(CachedOperation& slot, const SetView& set, uint32_t default_limit);
// Writes what this rank deposits for a small operation.
void write_deposit(const Operation& op, const wire::Request& request, const SetView& set,
                   std::byte* to);

// Output shapes and memory; a failure to allocate becomes op.status and the output is dropped.
void prepare_outputs(Operation& op, const CachedOperation& slot, const SetView& set);

// Runs a small operation: payloads[r] is what rank r deposited (null: joined); the own entry is not
// read.
void run_small_operation(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads);

// The same for the plainest of all: one tensor, no wire type, no pre-scaling, nobody joined, output
// given.
void run_plain_allreduce(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads);

// Describes a large operation to the data plane in op.work.
void build_work(Operation& op, const CachedOperation& slot, const SetView& set);

}  // namespace hvd::engine
