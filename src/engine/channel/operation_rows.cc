#include "engine/channel/operation_rows.h"

#include "base/text.h"

namespace hvd::engine {
namespace {

// The row of tensor `index` in the timeline.
std::string row_name(const Operation& op, size_t index) {
  if (op.name != nullptr) return op.name->name;
  if (index < op.names.size()) return op.names[index]->name;
  const std::string name = wire::unnamed_text(op.kind, op.unnamed_number);
  return op.buffers.size() == 1 ? name : concat(name, '.', index);
}

// NCCL_ALLREDUCE. Libraries call a broadcast BCAST; programs that read timelines look for that.
std::string activity_name(std::string_view activity, wire::Kind kind) {
  // Whatever it is made for; stages of an operation have names of their own.
  if (activity == "INIT_NCCL" || activity.starts_with("NCCL_") || activity.starts_with("MEMCPY_"))
    return std::string(activity);
  const bool is_of_library = activity == "NCCL" || activity == "GLOO";
  if (is_of_library && kind == wire::Kind::kBroadcast) return concat(activity, "_BCAST");
  return concat(activity, "_", wire::kind_name(kind));
}

}  // namespace

void OperationRows::submitted(Operation& op) {
  const std::string_view name = op.name != nullptr  ? std::string_view(op.name->name)
                                : !op.names.empty() ? std::string_view(op.names[0]->name)
                                                    : std::string_view();
  op.flight = flight_.begin(op.kind, members_.id(), op.bytes, name,
                            op.is_unnamed && !op.buffers.empty() ? op.unnamed_number : 0);
  if (trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
      HVD_UNLIKELY(timeline != nullptr) && op.kind != wire::Kind::kBarrier) {
    op.is_traced = true;
    const auto kind = wire::kind_name(op.kind);
    for (size_t t = 0; t < op.buffers.size(); ++t) timeline->negotiate_start(row_name(op, t), kind);
  }
}

void OperationRows::started(const Operation& op, std::string_view activity) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr) return;
  for (size_t t = 0; t < op.buffers.size(); ++t) {
    const std::string name = row_name(op, t);
    timeline->negotiate_end(name);
    timeline->start(name, wire::kind_name(op.kind));
    if (!activity.empty()) timeline->activity_start(name, activity_name(activity, op.kind));
  }
}

void OperationRows::went_on(const Operation& op, std::string_view activity) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr) return;
  for (size_t t = 0; t < op.buffers.size(); ++t) {
    const std::string name = row_name(op, t);
    timeline->activity_end(name);
    timeline->activity_start(name, activity_name(activity, op.kind));
  }
}

void OperationRows::ready(const Operation& op) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr || op.buffers.empty()) return;
  const std::string flight_name = op.is_unnamed ? std::string() : row_name(op, 0);
  for (int rank = 0; rank < members_.size(); ++rank) {
    const Nanoseconds ago = flight_.since_submission(members_.rank_of(rank), op.kind, members_.id(),
                                                     flight_name, op.unnamed_number);
    for (size_t t = 0; t < op.buffers.size(); ++t) timeline->rank_ready(row_name(op, t), rank, ago);
  }
}

void OperationRows::ended(const Operation& op) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr || (op.slot == nullptr && op.request == nullptr)) return;
  const wire::Request& request =
      op.slot != nullptr ? op.slot->request_of(members_.me()) : *op.request;
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const wire::TensorSpec& tensor = request.tensors[t];
    const std::string name = row_name(op, t);
    if (op.status.is_ok()) {
      const auto& shape = t < op.outputs.size() ? op.outputs[t].shape : tensor.shape;
      timeline->activity_end(name);
      timeline->end(name, dtype_name(tensor.dtype), wire::shape_text(shape));
    } else {
      timeline->negotiate_end(name);
      timeline->start(name, "ERROR");
      timeline->end(name, "", "");
    }
  }
}

}  // namespace hvd::engine
