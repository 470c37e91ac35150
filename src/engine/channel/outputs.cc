#include "engine/channel/outputs.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/bytes.h"
#include "base/text.h"

namespace hvd::engine {

using wire::Kind;

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

// Memory that a framework has just given may still be used by what its stream holds: the operation
// has to come after that, too.
void follow_allocation(Operation& op) {
  if (op.use.device < 0 || !op.status.is_ok()) return;
  if (Status status = op.use.note_allocation(); !status.is_ok()) op.status = std::move(status);
}

void find_memory(Operation& op, size_t t, Output& output) {
  const Buffer& buffer = op.buffers[t];
  std::string why;
  output.data = buffer.output;
  if (output.data != nullptr || (output.bytes == 0 && buffer.allocate == nullptr)) return;
  if (buffer.allocate != nullptr) {
    output.data = buffer.allocate(buffer.allocate_context, output.shape.data(),
                                  static_cast<int32_t>(output.shape.size()), output.bytes);
    if (output.data != nullptr) follow_allocation(op);
  } else if (op.use.device >= 0) {
    const auto memory = device::alloc_memory(op.use.device, output.bytes);
    output.owned.reset(memory ? *memory : nullptr);
    output.data = output.owned.get();
    if (!memory) why = concat(": ", memory.status().message());
  } else {
    output.owned.reset(std::aligned_alloc(64, align_up(output.bytes, 64)));
    output.data = output.owned.get();
  }
  if (output.data == nullptr && output.bytes > 0) {
    op.status = Status(StatusCode::kOutOfMemory,
                       concat("no memory for an output of ", output.bytes, " bytes", why));
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

}  // namespace hvd::engine
