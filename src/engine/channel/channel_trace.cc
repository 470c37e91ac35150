// The rows of a channel's operations in the timeline. Needs the engine role.
#include "base/text.h"
#include "engine/channel/channel.h"

namespace hvd::engine {

std::string Channel::trace_name(const Operation& op, size_t index) {
  if (op.name != nullptr) return op.name->name;
  if (index < op.names.size()) return op.names[index]->name;
  const std::string name = wire::unnamed_text(op.kind, op.unnamed_number);
  return op.buffers.size() == 1 ? name : concat(name, '.', index);
}

void Channel::trace_start(const Operation& op) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr) return;
  const std::string_view prefix =
      op.use.device < 0 ? std::string_view("SHM") : plane_.activity(op.work);
  for (size_t t = 0; t < op.buffers.size(); ++t) {
    const std::string name = trace_name(op, t);
    timeline->negotiate_end(name);
    timeline->start(name, wire::kind_name(op.kind));
    timeline->activity_start(name, concat(prefix, "_", wire::kind_name(op.kind)));
  }
}

// When each rank had submitted it, as its ring of last operations says.
void Channel::trace_ready(const Operation& op) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr || op.buffers.empty()) return;
  const std::string flight_name = op.is_unnamed ? std::string() : trace_name(op, 0);
  for (int rank = 0; rank < size(); ++rank) {
    const Nanoseconds ago = flight_.since_submission(rank_of(rank), op.kind, options_.id,
                                                     flight_name, op.unnamed_number);
    for (size_t t = 0; t < op.buffers.size(); ++t)
      timeline->rank_ready(trace_name(op, t), rank, ago);
  }
}

void Channel::trace_end(const Operation& op) {
  trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
  if (timeline == nullptr || (op.slot == nullptr && op.request == nullptr)) return;
  const wire::Request& request = op.slot != nullptr ? op.slot->request_of(me()) : *op.request;
  for (size_t t = 0; t < request.tensors.size(); ++t) {
    const wire::TensorSpec& tensor = request.tensors[t];
    const std::string name = trace_name(op, t);
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
