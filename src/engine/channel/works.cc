#include "engine/channel/works.h"

#include <algorithm>

#include "engine/channel/outputs.h"

namespace hvd::engine {

using wire::Kind;

uint64_t row_bytes(const CachedOperation& slot, size_t tensor) {
  return slot.plan.tensors[tensor].row_elements *
         dtype_bytes(slot.requests[0].tensors[tensor].dtype);
}

std::vector<uint64_t> row_offsets(const CachedOperation& slot, size_t tensor) {
  const std::vector<int64_t>& rows = slot.plan.tensors[tensor].rows;
  const uint64_t bytes_per_row = row_bytes(slot, tensor);
  std::vector<uint64_t> offsets(rows.size() + 1, 0);
  for (size_t r = 0; r < rows.size(); ++r)
    offsets[r + 1] = offsets[r] + static_cast<uint64_t>(rows[r]) * bytes_per_row;
  return offsets;
}

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
  const std::vector<uint64_t> offsets = row_offsets(slot, t);
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
  const auto size = static_cast<size_t>(set.size);
  const size_t root = set.place_of(slot.requests[0].root_rank);
  x.same_block_for_all = true;
  x.largest_block_bytes = slot.requests[0].tensors[0].bytes();
  x.send_offset = {0};
  x.send_bytes = {root == static_cast<size_t>(set.me) ? x.largest_block_bytes : 0};
  x.receive_offset.assign(size, 0);
  x.receive_bytes.assign(size, 0);
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
  const std::vector<uint64_t> offsets = row_offsets(slot, t);
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
  op.work.status = op.status;  // who runs it may need the memory that was not there
  for (int r = 0; r < set.size; ++r) op.work.devices.push_back(slot.request_of(r).device);
}

}  // namespace hvd::engine
