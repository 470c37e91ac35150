#include "engine/channel/small_operations.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collective/small/deposits.h"
#include "engine/channel/outputs.h"
#include "engine/channel/works.h"

namespace hvd::engine {

namespace small = collective::small;
using wire::Kind;

namespace {

bool is_reduction(Kind kind) { return kind == Kind::kAllreduce; }

uint64_t deposit_bytes_of(const CachedOperation& slot, const SetView& set, int rank) {
  const wire::Request& request = slot.request_of(rank);
  uint64_t bytes = 0;
  for (const wire::TensorSpec& tensor : request.tensors) {
    const uint64_t element_bytes =
        request.wire_dtype >= 0 && is_reduction(request.kind) ? 2 : dtype_bytes(tensor.dtype);
    bytes += tensor.element_count() * element_bytes;
  }
  if (request.kind == Kind::kBroadcast &&
      (*set.global_ranks)[static_cast<size_t>(rank)] != request.root_rank)
    return 0;
  return bytes;
}

}  // namespace

void derive(CachedOperation& slot, const SetView& set, uint32_t default_limit) {
  const wire::Request& request = slot.request_of(set.me);
  uint64_t largest = 0;
  slot.deposit_of.assign(static_cast<size_t>(set.size), 0);
  for (int rank = 0; rank < set.size && set.size > 1; ++rank) {
    const uint64_t bytes = deposit_bytes_of(slot, set, rank);
    largest = std::max(largest, bytes);
    slot.deposit_of[static_cast<size_t>(rank)] =
        static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
  }
  const bool is_on_host = request.device < 0;  // deposits are made by the submitting thread
  slot.small_from = static_cast<uint32_t>(std::min<uint64_t>(largest, UINT32_MAX));
  // Adasum has other bits on the large path: a limit that changes must not change them.
  if (request.kind == Kind::kAdasum) slot.small_from = largest <= default_limit ? 0 : UINT32_MAX;
  if (!is_on_host) slot.small_from = UINT32_MAX;
  slot.deposit_bytes = slot.deposit_of[static_cast<size_t>(set.me)];
  slot.may_share = is_on_host && request.kind == Kind::kAllreduce && request.wire_dtype < 0 &&
                   request.prescale == 1.0;
  slot.total_bytes = 0;
  slot.is_plain = is_on_host && request.kind == Kind::kAllreduce && request.tensors.size() == 1 &&
                  request.wire_dtype < 0 && request.prescale == 1.0;
  if (slot.is_plain) {
    slot.plain_count = request.tensors[0].element_count();
    slot.plain_numeric = numeric_of(request, request.tensors[0].dtype, set.size);
  }
  for (const wire::TensorSpec& tensor : request.tensors) slot.total_bytes += tensor.bytes();
}

void write_deposit(const Operation& op, const wire::Request& request, const SetView& set,
                   std::byte* to) {
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const wire::TensorSpec& tensor = request.tensors[t];
    const auto* input = static_cast<const std::byte*>(op.buffers[t].input);
    if (request.kind == Kind::kAllreduce || request.kind == Kind::kReducescatter) {
      const collective::Numeric n = numeric_of(request, tensor.dtype, set.size);
      const uint64_t count = tensor.element_count();
      if (count > 0) collective::put(n, to, input, count);
      to += count * n.slot_bytes();
    } else {
      if (tensor.bytes() > 0) std::memcpy(to, input, tensor.bytes());
      to += tensor.bytes();
    }
  }
}

// ---- execution

namespace {

struct SmallRun {
  const Operation& op;
  const CachedOperation& slot;
  const SetView& set;
  const small::Deposits deposits;

  const wire::Request& request() const { return slot.requests[0]; }
  collective::Numeric numeric(size_t t) const {
    return numeric_of(request(), request().tensors[t].dtype, set.size);
  }
  small::Buffers buffers(size_t t) const {
    return {static_cast<const std::byte*>(op.buffers[t].input),
            static_cast<std::byte*>(op.buffers[t].output)};
  }
};

void reduce(const SmallRun& run) {
  uint64_t offset = 0;
  for (size_t t = 0; t < run.request().tensors.size(); ++t) {
    const collective::Numeric n = run.numeric(t);
    const uint64_t count = run.request().tensors[t].element_count();
    small::reduce(run.deposits, offset, n, run.buffers(t), count);
    offset += count * n.slot_bytes();
  }
}

void adasum(const SmallRun& run) {
  uint64_t offset = 0;
  for (size_t t = 0; t < run.request().tensors.size(); ++t) {
    const wire::TensorSpec& tensor = run.request().tensors[t];
    small::adasum(run.deposits, offset, run.numeric(t), run.buffers(t), tensor.element_count());
    offset += tensor.bytes();
  }
}

void broadcast(const SmallRun& run) {
  const wire::Request& request = run.request();
  small::broadcast(run.deposits, static_cast<int>(run.set.place_of(request.root_rank)),
                   run.buffers(0), request.tensors[0].bytes());
}

void allgather(const SmallRun& run) {
  std::vector<uint64_t> read(static_cast<size_t>(run.set.size), 0);
  for (size_t t = 0; t < run.request().tensors.size(); ++t)
    small::gather(run.deposits, row_offsets(run.slot, t), read, run.buffers(t));
}

void alltoall(const SmallRun& run) {
  small::exchange(run.deposits, run.slot.plan.tensors[0].splits, row_bytes(run.slot, 0),
                  run.buffers(0));
}

void reducescatter(const SmallRun& run) {
  uint64_t offset = 0;
  for (size_t t = 0; t < run.request().tensors.size(); ++t) {
    const collective::Numeric n = run.numeric(t);
    const std::vector<uint64_t> begin = row_offsets(run.slot, t);
    const auto me = static_cast<size_t>(run.set.me);
    small::Buffers buffers = run.buffers(t);
    buffers.in += begin[me];
    small::reduce(run.deposits, offset + begin[me], n, buffers,
                  (begin[me + 1] - begin[me]) / n.element_bytes());
    offset += run.request().tensors[t].bytes();
  }
}

}  // namespace

void run_plain_allreduce(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads) {
  small::reduce_plain({payloads, set.size, set.me, set.hosts}, slot.plain_numeric,
                      {static_cast<const std::byte*>(op.buffers[0].input),
                       static_cast<std::byte*>(op.buffers[0].output)},
                      slot.plain_count);
}

void run_small_operation(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads) {
  prepare_outputs(op, slot, set);
  const SmallRun run{op, slot, set, {payloads, set.size, set.me, set.hosts}};
  switch (slot.kind()) {
    case Kind::kAllreduce:
      return reduce(run);
    case Kind::kAdasum:
      return adasum(run);
    case Kind::kBroadcast:
      return broadcast(run);
    case Kind::kAllgather:
      return allgather(run);
    case Kind::kAlltoall:
      return alltoall(run);
    case Kind::kReducescatter:
      return reducescatter(run);
    default:
      return;  // a barrier moves nothing
  }
}

}  // namespace hvd::engine
