#include "engine/channel/works.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/bytes.h"
#include "base/cpu.h"
#include "collective/adasum.h"
#include "collective/hosts/small_combine.h"
#include "shm/job_layout.h"

namespace hvd::engine {
namespace {

using wire::Kind;

bool is_reduction(Kind kind) { return kind == Kind::kAllreduce; }

uint64_t row_bytes(const CachedOperation& slot, size_t tensor) {
  return slot.plan.tensors[tensor].row_elements *
         dtype_bytes(slot.requests[0].tensors[tensor].dtype);
}

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

std::vector<uint64_t> prefix_bytes(const std::vector<int64_t>& rows, uint64_t bytes_per_row) {
  std::vector<uint64_t> offsets(rows.size() + 1, 0);
  for (size_t r = 0; r < rows.size(); ++r)
    offsets[r + 1] = offsets[r] + static_cast<uint64_t>(rows[r]) * bytes_per_row;
  return offsets;
}

}  // namespace

collective::Numeric numeric_of(const wire::Request& request, DType dtype, int set_size) {
  collective::Numeric n;
  n.dtype = dtype;
  n.slot_dtype = request.wire_dtype >= 0 ? static_cast<DType>(request.wire_dtype) : dtype;
  n.op = request.reduce_op == ReduceOp::kAverage ? ReduceOp::kSum : request.reduce_op;
  n.pre = Scale{request.prescale, 1};
  n.post = Scale{request.postscale, request.reduce_op == ReduceOp::kAverage ? set_size : 1};
  // An average times the number of ranks is their sum.
  if (is_floating(dtype) && n.post.factor == static_cast<double>(n.post.divisor)) n.post = Scale{};
  return n;
}

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
    slot.plain_divisor = request.reduce_op == ReduceOp::kAverage ? set.size : 1;
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

// ---- outputs
// ---------------------------------------------------------------------------------------------

namespace {

std::vector<int64_t> output_shape(const CachedOperation& slot, const SetView& set, size_t t) {
  const wire::TensorSpec& tensor = slot.request_of(set.me).tensors[t];
  std::vector<int64_t> shape = tensor.shape;
  const negotiate::TensorPlan* plan =
      t < slot.plan.tensors.size() ? &slot.plan.tensors[t] : nullptr;
  if (slot.kind() == Kind::kAllgather) {
    shape[0] = std::accumulate(plan->rows.begin(), plan->rows.end(), int64_t{0});
  } else if (slot.kind() == Kind::kReducescatter) {
    shape[0] = plan->rows[static_cast<size_t>(set.me)];
  } else if (slot.kind() == Kind::kAlltoall) {
    shape[0] = 0;
    for (int from = 0; from < set.size; ++from) {
      shape[0] += plan->splits[static_cast<size_t>(from * set.size + set.me)];
    }
  }
  return shape;
}

void find_memory(Operation& op, size_t t, Output& output) {
  const Buffer& buffer = op.buffers[t];
  output.data = buffer.output;
  if (output.data != nullptr || (output.bytes == 0 && buffer.allocate == nullptr)) return;
  if (buffer.allocate != nullptr) {
    output.data = buffer.allocate(buffer.allocate_context, output.shape.data(),
                                  static_cast<int32_t>(output.shape.size()), output.bytes);
  } else if (op.use.device >= 0) {
    const auto memory = device::alloc_memory(op.use.device, output.bytes);
    output.owned.reset(memory ? *memory : nullptr);
    output.data = output.owned.get();
  } else {
    output.owned.reset(std::aligned_alloc(64, align_up(output.bytes, 64)));
    output.data = output.owned.get();
  }
  if (output.data == nullptr && output.bytes > 0) {
    op.status = Status(StatusCode::kOutOfMemory,
                       "no memory for an output of " + std::to_string(output.bytes) + " bytes");
  }
}

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto* x = static_cast<const std::byte*>(a);
  const auto* y = static_cast<const std::byte*>(b);
  return x != nullptr && y != nullptr && x < y + b_bytes && y < x + a_bytes;
}

// Blocks leave the input while others arrive in the output: where the two overlap, send from a
// copy.
void separate_input(Operation& op, const CachedOperation& slot, const SetView& set, size_t t) {
  if (op.use.device >= 0) return;  // the backend copies where it has to
  const uint64_t bytes = slot.request_of(set.me).tensors[t].bytes();
  if (!overlap(op.buffers[t].input, bytes, op.outputs[t].data, op.outputs[t].bytes)) return;
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[bytes]);
  if (copy == nullptr) {
    op.status =
        Status(StatusCode::kOutOfMemory, "no memory to copy an input of " + std::to_string(bytes) +
                                             " bytes that overlaps its output");
    op.buffers[t].output = nullptr;  // the others still get what we send
    return;
  }
  std::memcpy(copy.get(), op.buffers[t].input, bytes);
  op.buffers[t].input = copy.get();
  op.copies.push_back(std::move(copy));
}

}  // namespace

void prepare_outputs(Operation& op, const CachedOperation& slot, const SetView& set) {
  const auto& tensors = slot.request_of(set.me).tensors;
  const bool moves_blocks = slot.kind() == Kind::kAllgather || slot.kind() == Kind::kAlltoall ||
                            slot.kind() == Kind::kReducescatter;
  if (op.is_shadow) {
    op.buffers.assign(tensors.size(), Buffer{});
    return;
  }
  const bool given = std::all_of(op.buffers.begin(), op.buffers.end(),
                                 [](const Buffer& b) { return b.output != nullptr; });
  if (!moves_blocks && given) return;  // the common case allocates nothing
  op.is_used_up = true;
  op.outputs.resize(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    Output& output = op.outputs[t];
    output.shape = output_shape(slot, set, t);
    output.bytes = dtype_bytes(tensors[t].dtype);
    for (const int64_t dim : output.shape) output.bytes *= static_cast<size_t>(dim);
    find_memory(op, t, output);
    op.buffers[t].output = output.data;
    if (moves_blocks) separate_input(op, slot, set, t);
    if (slot.kind() == Kind::kAlltoall) {
      for (int from = 0; from < set.size; ++from) {
        output.received_splits.push_back(
            slot.plan.tensors[t].splits[static_cast<size_t>(from * set.size + set.me)]);
      }
    }
  }
}

// ---- small operations
// ------------------------------------------------------------------------------------

namespace {

alignas(64) const std::byte kZeros[64 << 10] = {};  // what a joined rank contributes

struct SmallRun {
  Operation& op;
  const CachedOperation& slot;
  const SetView& set;
  const std::byte* const* payloads;
};

void combine(const SetView& set, const collective::Numeric& numeric,
             const collective::Combine& args) {
  if (HVD_UNLIKELY(set.hosts != nullptr)) {
    collective::hosts::combine_by_host(*set.hosts, numeric, args);
  } else {
    collective::combine(numeric, args);
  }
}

void small_allreduce(const SmallRun& s) {
  const wire::Request& request = s.slot.requests[0];
  const std::byte* slots[shm::kMaxRanks];
  uint64_t offset = 0;
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const collective::Numeric n = numeric_of(request, request.tensors[t].dtype, s.set.size);
    const uint64_t count = request.tensors[t].element_count();
    if (count == 0) continue;
    for (int r = 0; r < s.set.size; ++r)
      slots[r] = s.payloads[r] == nullptr ? kZeros : s.payloads[r] + offset;
    combine(s.set, n,
            {slots, static_cast<unsigned>(s.set.size), static_cast<unsigned>(s.set.me),
             static_cast<const std::byte*>(s.op.buffers[t].input),
             static_cast<std::byte*>(s.op.buffers[t].output), nullptr, count});
    offset += count * n.slot_bytes();
  }
}

void small_adasum(const SmallRun& s) {
  const wire::Request& request = s.slot.requests[0];
  uint64_t offset = 0;
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const collective::Numeric n = numeric_of(request, request.tensors[t].dtype, s.set.size);
    const DType work = collective::adasum_work_dtype(n.dtype);
    const uint64_t count = request.tensors[t].element_count();
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::byte*> vectors;
    for (int r = 0; r < s.set.size; ++r) {
      memory.emplace_back(count * dtype_bytes(work));
      const auto* own = static_cast<const std::byte*>(s.op.buffers[t].input);
      const std::byte* theirs = s.payloads[r] == nullptr ? nullptr : s.payloads[r] + offset;
      collective::adasum_load(n, memory.back().data(), r == s.set.me ? own : theirs, count);
      vectors.push_back(memory.back().data());
    }
    collective::adasum_locally(work, vectors, count);
    collective::adasum_store(n, static_cast<std::byte*>(s.op.buffers[t].output), vectors[0], count);
    offset += request.tensors[t].bytes();
  }
}

void copy_block(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes > 0 && to != nullptr && from != to) std::memmove(to, from, bytes);
}

void small_broadcast(const SmallRun& s) {
  const wire::Request& request = s.slot.requests[0];
  const auto& ranks = *s.set.global_ranks;
  const auto root =
      static_cast<size_t>(std::find(ranks.begin(), ranks.end(), request.root_rank) - ranks.begin());
  const auto* own = static_cast<const std::byte*>(s.op.buffers[0].input);
  copy_block(static_cast<std::byte*>(s.op.buffers[0].output),
             static_cast<int>(root) == s.set.me ? own : s.payloads[root],
             request.tensors[0].bytes());
}

void small_allgather(const SmallRun& s) {
  std::vector<uint64_t> read(static_cast<size_t>(s.set.size),
                             0);  // bytes of each payload used so far
  for (size_t t = 0; t < s.slot.requests[0].tensors.size(); ++t) {
    const auto offsets = prefix_bytes(s.slot.plan.tensors[t].rows, row_bytes(s.slot, t));
    auto* out = static_cast<std::byte*>(s.op.buffers[t].output);
    for (int r = 0; r < s.set.size; ++r) {
      const auto i = static_cast<size_t>(r);
      const uint64_t bytes = offsets[i + 1] - offsets[i];
      const auto* own = static_cast<const std::byte*>(s.op.buffers[t].input);
      copy_block(out == nullptr ? nullptr : out + offsets[i],
                 r == s.set.me ? own : s.payloads[r] + read[i], bytes);
      read[i] += bytes;
    }
  }
}

void small_alltoall(const SmallRun& s) {
  const auto& splits = s.slot.plan.tensors[0].splits;
  const uint64_t bytes_per_row = row_bytes(s.slot, 0);
  auto* out = static_cast<std::byte*>(s.op.buffers[0].output);
  uint64_t at = 0;
  for (int from = 0; from < s.set.size; ++from) {
    uint64_t skip = 0;
    for (int to = 0; to < s.set.me; ++to)
      skip += static_cast<uint64_t>(splits[static_cast<size_t>(from * s.set.size + to)]);
    const uint64_t bytes =
        static_cast<uint64_t>(splits[static_cast<size_t>(from * s.set.size + s.set.me)]) *
        bytes_per_row;
    const auto* own = static_cast<const std::byte*>(s.op.buffers[0].input);
    copy_block(out == nullptr ? nullptr : out + at,
               (from == s.set.me ? own : s.payloads[from]) + skip * bytes_per_row, bytes);
    at += bytes;
  }
}

void small_reducescatter(const SmallRun& s) {
  const wire::Request& request = s.slot.requests[0];
  const std::byte* slots[shm::kMaxRanks];
  uint64_t offset = 0;
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const collective::Numeric n = numeric_of(request, request.tensors[t].dtype, s.set.size);
    const auto begin = prefix_bytes(s.slot.plan.tensors[t].rows, row_bytes(s.slot, t));
    const auto me = static_cast<size_t>(s.set.me);
    const uint64_t count = (begin[me + 1] - begin[me]) / n.element_bytes();
    const auto* own = static_cast<const std::byte*>(s.op.buffers[t].input);
    if (count > 0) {
      for (int r = 0; r < s.set.size; ++r) slots[r] = s.payloads[r] + offset + begin[me];
      combine(s.set, n,
              {slots, static_cast<unsigned>(s.set.size), static_cast<unsigned>(me), own + begin[me],
               static_cast<std::byte*>(s.op.buffers[t].output), nullptr, count});
    }
    offset += request.tensors[t].bytes();
  }
}

}  // namespace

void run_plain_allreduce(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads) {
  const wire::Request& request = slot.requests[0];
  if (HVD_UNLIKELY(set.hosts != nullptr)) {
    return collective::hosts::combine_by_host(
        *set.hosts, numeric_of(request, request.tensors[0].dtype, set.size),
        {payloads, static_cast<unsigned>(set.size), static_cast<unsigned>(set.me),
         static_cast<const std::byte*>(op.buffers[0].input),
         static_cast<std::byte*>(op.buffers[0].output), nullptr, slot.plain_count});
  }
  const void* sources[shm::kMaxRanks];
  for (int r = 0; r < set.size; ++r) sources[r] = payloads[r];
  sources[set.me] = op.buffers[0].input;
  void* output = op.buffers[0].output;
  const ReduceOp reduce_op =
      request.reduce_op == ReduceOp::kAverage ? ReduceOp::kSum : request.reduce_op;
  kernels().reduce({request.tensors[0].dtype, reduce_op, slot.plain_count, sources,
                    static_cast<unsigned>(set.size), &output, 1,
                    Scale{request.postscale, slot.plain_divisor}});
}

void run_small_operation(Operation& op, const CachedOperation& slot, const SetView& set,
                         const std::byte* const* payloads) {
  prepare_outputs(op, slot, set);
  const SmallRun run{op, slot, set, payloads};
  switch (slot.kind()) {
    case Kind::kAllreduce:
      return small_allreduce(run);
    case Kind::kAdasum:
      return small_adasum(run);
    case Kind::kBroadcast:
      return small_broadcast(run);
    case Kind::kAllgather:
      return small_allgather(run);
    case Kind::kAlltoall:
      return small_alltoall(run);
    case Kind::kReducescatter:
      return small_reducescatter(run);
    default:
      return;  // a barrier moves nothing
  }
}

// ---- large operations
// ------------------------------------------------------------------------------------

namespace {

void build_runs(Operation& op, const CachedOperation& slot, const SetView& set) {
  const wire::Request& request = slot.requests[0];
  op.work.reset(slot.kind() == Kind::kAdasum ? collective::WorkKind::kAdasum
                                             : collective::WorkKind::kReduce);
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const DType dtype = request.tensors[t].dtype;
    collective::Run* run = nullptr;
    for (size_t r = 0; r < op.work.run_count && run == nullptr; ++r) {
      if (op.work.runs[r].numeric.dtype == dtype) run = &op.work.runs[r];
    }
    if (run == nullptr) {
      run = &op.work.next_run();
      run->numeric = numeric_of(request, dtype, set.size);
    }
    run->add(op.buffers[t].input, op.buffers[t].output, request.tensors[t].element_count());
  }
}

collective::Exchange blocks_of_gather(const CachedOperation& slot, const SetView& set, size_t t) {
  collective::Exchange x;
  x.same_block_for_all = true;
  const auto offsets = prefix_bytes(slot.plan.tensors[t].rows, row_bytes(slot, t));
  x.send_offset = {0};
  for (size_t r = 0; r + 1 < offsets.size(); ++r) {
    x.receive_offset.push_back(offsets[r]);
    x.receive_bytes.push_back(offsets[r + 1] - offsets[r]);
    x.largest_block_bytes = std::max(x.largest_block_bytes, x.receive_bytes.back());
  }
  x.send_bytes = {x.receive_bytes[static_cast<size_t>(set.me)]};
  return x;
}

collective::Exchange blocks_of_broadcast(const CachedOperation& slot, const SetView& set) {
  collective::Exchange x;
  const auto& ranks = *set.global_ranks;
  const auto root = static_cast<size_t>(
      std::find(ranks.begin(), ranks.end(), slot.requests[0].root_rank) - ranks.begin());
  x.same_block_for_all = true;
  x.largest_block_bytes = slot.requests[0].tensors[0].bytes();
  x.send_offset = {0};
  x.send_bytes = {root == static_cast<size_t>(set.me) ? x.largest_block_bytes : 0};
  x.receive_offset.assign(ranks.size(), 0);
  x.receive_bytes.assign(ranks.size(), 0);
  x.receive_bytes[root] = x.largest_block_bytes;
  return x;
}

collective::Exchange blocks_of_alltoall(const CachedOperation& slot, const SetView& set) {
  collective::Exchange x;
  const auto& splits = slot.plan.tensors[0].splits;
  const uint64_t bytes_per_row = row_bytes(slot, 0);
  const auto bytes = [&](int from, int to) {
    return static_cast<uint64_t>(splits[static_cast<size_t>(from * set.size + to)]) * bytes_per_row;
  };
  uint64_t sent = 0, received = 0;
  for (int r = 0; r < set.size; ++r) {
    x.send_offset.push_back(sent);
    x.send_bytes.push_back(bytes(set.me, r));
    sent += x.send_bytes.back();
    x.receive_offset.push_back(received);
    x.receive_bytes.push_back(bytes(r, set.me));
    received += x.receive_bytes.back();
    for (int to = 0; to < set.size; ++to)
      x.largest_block_bytes = std::max(x.largest_block_bytes, bytes(r, to));
  }
  return x;
}

collective::Exchange blocks_of_reducescatter(const CachedOperation& slot, const SetView& set,
                                             size_t t) {
  collective::Exchange x;
  x.reduces = true;
  x.numeric = numeric_of(slot.requests[0], slot.requests[0].tensors[t].dtype, set.size);
  const auto offsets = prefix_bytes(slot.plan.tensors[t].rows, row_bytes(slot, t));
  const auto me = static_cast<size_t>(set.me);
  for (size_t r = 0; r + 1 < offsets.size(); ++r) {
    x.send_offset.push_back(offsets[r]);
    x.send_bytes.push_back(offsets[r + 1] - offsets[r]);
    x.receive_offset.push_back(0);
    x.receive_bytes.push_back(offsets[me + 1] - offsets[me]);
    x.largest_block_bytes = std::max(x.largest_block_bytes, x.send_bytes.back());
  }
  return x;
}

// Objects travel as bytes (a pickle in uint8), so bytes that are moved are taken for objects:
// whoever could change them between hosts could run code where they are read (decision 0017).
bool may_be_objects(Kind kind, DType dtype) {
  return kind != Kind::kReducescatter && (dtype == DType::kUint8 || dtype == DType::kInt8);
}

}  // namespace

void build_work(Operation& op, const CachedOperation& slot, const SetView& set) {
  prepare_outputs(op, slot, set);
  if (slot.kind() == Kind::kAllreduce || slot.kind() == Kind::kAdasum) {
    build_runs(op, slot, set);
  } else {
    op.work.reset(collective::WorkKind::kExchange);
    for (size_t t = 0; t < slot.requests[0].tensors.size(); ++t) {
      switch (slot.kind()) {
        case Kind::kAllgather:
          op.work.exchanges.push_back(blocks_of_gather(slot, set, t));
          break;
        case Kind::kBroadcast:
          op.work.exchanges.push_back(blocks_of_broadcast(slot, set));
          break;
        case Kind::kAlltoall:
          op.work.exchanges.push_back(blocks_of_alltoall(slot, set));
          break;
        default:
          op.work.exchanges.push_back(blocks_of_reducescatter(slot, set, t));
      }
      op.work.exchanges.back().moves_bytes =
          may_be_objects(slot.kind(), slot.requests[0].tensors[t].dtype);
      op.work.exchanges.back().in = static_cast<const std::byte*>(op.buffers[t].input);
      op.work.exchanges.back().out = static_cast<std::byte*>(op.buffers[t].output);
    }
  }
  if (slot.requests[0].device < 0) return;
  op.work.device = {DeviceKind::kGpu, op.use.device};
  op.work.use = op.is_shadow ? nullptr : &op.use;
  for (int r = 0; r < set.size; ++r) op.work.devices.push_back(slot.request_of(r).device);
}

}  // namespace hvd::engine
