#include "capi/convert.h"

#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "wire/limits.h"

namespace hvd::capi {
namespace {

// The first version of a struct; later ones only append fields.
constexpr uint32_t kSmallestRequest = offsetof(hvd_request, callback_context) + sizeof(void*);
constexpr uint32_t kSmallestOptions =
    offsetof(hvd_init_options, dynamic_process_sets) + sizeof(int32_t);
constexpr int64_t kBarrierShape[1] = {0};

Status check_request(const hvd_request& r) {
  if (r.struct_size < kSmallestRequest) {
    return invalid_argument(concat("request: struct_size is ", r.struct_size,
                                   ", expected at least ", kSmallestRequest,
                                   "; fill requests with hvd_request_init"));
  }
  const bool known_kind = r.kind >= 0 && r.kind <= HVD_REDUCESCATTER && r.kind != HVD_ADASUM;
  if (!known_kind)
    return invalid_argument(
        concat("request: kind ", r.kind, " is not an operation that can be submitted"));
  const auto kind = wire::kind_lower_name(static_cast<wire::Kind>(r.kind));
  if (!dtype_from_code(r.dtype))
    return invalid_argument(concat(kind, ": dtype ", r.dtype, " is not valid"));
  if (!reduce_op_from_code(r.reduce_op))
    return invalid_argument(concat(kind, ": reduce op ", r.reduce_op, " is not valid"));
  if (r.progress < 0 || r.progress > HVD_PROGRESS_BACKGROUND) {
    return invalid_argument(concat(kind, ": progress policy ", r.progress, " is not valid"));
  }
  if (r.device < -1) {
    return invalid_argument(
        concat(kind, ": device ", r.device, " is not valid; -1 is host memory"));
  }
  if (r.ndim > wire::kMaxDimensions || r.splits_count > static_cast<int32_t>(wire::kMaxRanks)) {
    return invalid_argument(concat(kind, ": ", r.ndim, " dimensions and ", r.splits_count,
                                   " splits; the limits are ", wire::kMaxDimensions, " and ",
                                   wire::kMaxRanks));
  }
  if (r.ndim < 0 || (r.ndim > 0 && r.shape == nullptr)) {
    return invalid_argument(concat(kind, ": ", r.ndim, " dimensions with shape ",
                                   r.shape == nullptr ? "null" : "given"));
  }
  if (r.splits_count < 0 || (r.splits_count > 0 && r.splits == nullptr)) {
    return invalid_argument(concat(kind, ": ", r.splits_count, " splits with array ",
                                   r.splits == nullptr ? "null" : "given"));
  }
  for (int32_t i = 0; i < r.ndim; ++i) {
    if (r.shape[i] < 0)
      return invalid_argument(concat(kind, ": dimension ", i, " is ", r.shape[i]));
  }
  return Status::ok();
}

engine::TensorArg tensor_of(const hvd_request& r) {
  engine::TensorArg tensor;
  if (r.name != nullptr) tensor.name = r.name;
  tensor.dtype = static_cast<DType>(r.dtype);
  tensor.shape = {r.shape, static_cast<size_t>(r.ndim)};
  tensor.splits = {r.splits, static_cast<size_t>(r.splits_count)};
  tensor.input = r.input;
  tensor.output = r.output;
  tensor.allocate = r.allocate;
  tensor.allocate_context = r.allocate_context;
  if (r.kind == HVD_BARRIER) {
    tensor.name = engine::kBarrierName;
    tensor.dtype = DType::kUint8;
    tensor.shape = kBarrierShape;
  }
  return tensor;
}

// Fields that came later; null in what older callers give.
void* stream_of(const hvd_request& r) {
  constexpr uint32_t kWithStream = offsetof(hvd_request, stream) + sizeof(void*);
  return r.struct_size >= kWithStream ? r.stream : nullptr;
}

// Entry of an array whose owner may know a shorter struct.
const hvd_request& request_at(const hvd_request* requests, size_t index) {
  const auto* bytes = reinterpret_cast<const std::byte*>(requests);
  return *reinterpret_cast<const hvd_request*>(bytes + index * requests->struct_size);
}

bool has_name(const hvd_request& r) { return r.name != nullptr && *r.name != '\0'; }

Status same_group(const hvd_request& first, const hvd_request& other, size_t index) {
  if (first.kind == other.kind && first.reduce_op == other.reduce_op &&
      first.process_set == other.process_set && first.prescale == other.prescale &&
      first.postscale == other.postscale && first.wire_dtype == other.wire_dtype &&
      first.device == other.device && has_name(first) == has_name(other)) {
    return Status::ok();
  }
  return invalid_argument(
      concat("group: request ", index,
             " differs from the first in kind, op, factors, wire type, device, process set or "
             "in having a name; these must be the same in a group"));
}

}  // namespace

Status convert(const hvd_request* requests, size_t count, const engine::Engine& engine,
               Converted& out) {
  if (requests == nullptr || count == 0)
    return invalid_argument("submission: no request given (null or 0)");
  const hvd_request& first = requests[0];
  HVD_TRY(check_request(first));
  engine::Submission& s = out.submission;
  s.kind = static_cast<wire::Kind>(first.kind);
  s.reduce_op = static_cast<ReduceOp>(first.reduce_op);
  if (s.kind == wire::Kind::kAllreduce && s.reduce_op == ReduceOp::kAdasum)
    s.kind = wire::Kind::kAdasum;
  s.wire_dtype = first.wire_dtype;
  s.root_rank = first.kind == HVD_BROADCAST ? first.root_rank : -1;
  s.device = first.device;
  s.stream = stream_of(first);
  s.prescale = first.prescale;
  s.postscale = first.postscale;
  s.progress = first.progress == HVD_PROGRESS_DEFAULT ? engine.default_progress()
                                                      : static_cast<ProgressPolicy>(first.progress);
  s.on_complete = reinterpret_cast<engine::CallbackFn>(first.on_complete);
  s.callback_context = first.callback_context;
  out.set = first.process_set;
  if (s.kind == wire::Kind::kJoin) return Status::ok();
  if (count == 1) {
    out.single = tensor_of(first);
    s.tensors = {&out.single, 1};
    return Status::ok();
  }
  out.several.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const hvd_request& request = request_at(requests, i);
    HVD_TRY(check_request(request));
    HVD_TRY(same_group(first, request, i));
    out.several.push_back(tensor_of(request));
  }
  s.tensors = out.several;
  return Status::ok();
}

Status apply_init_options(const hvd_init_options& o, engine::EngineOptions& out) {
  if (o.struct_size < kSmallestOptions) {
    return invalid_argument(concat("init: struct_size is ", o.struct_size, ", expected at least ",
                                   kSmallestOptions, "; fill options with hvd_init_options_init"));
  }
  if (o.progress < 0 || o.progress > HVD_PROGRESS_BACKGROUND)
    return invalid_argument(concat("init: progress policy ", o.progress, " is not valid"));
  if (o.progress != HVD_PROGRESS_DEFAULT)
    out.settings.progress = static_cast<ProgressPolicy>(o.progress);
  if (o.dynamic_process_sets != 0) out.settings.dynamic_process_sets = true;
  if (o.job_id != nullptr) out.topology.job_id = o.job_id;
  if (o.topology.size != -1 || o.topology.rank != -1) {
    topology::Topology& t = out.topology;
    t.rank = o.topology.rank;
    t.size = o.topology.size;
    // What is not said follows from one host.
    t.local_rank = o.topology.local_rank == -1 ? t.rank : o.topology.local_rank;
    t.local_size = o.topology.local_size == -1 ? t.size : o.topology.local_size;
    t.cross_rank = o.topology.cross_rank == -1 ? 0 : o.topology.cross_rank;
    t.cross_size = o.topology.cross_size == -1 ? 1 : o.topology.cross_size;
    HVD_TRY(topology::check_topology(t));
  }
  if (out.topology.job_id.empty())
    out.topology.job_id = process_environment()("HOROVOD_JOB_ID").value_or("");
  if (out.topology.size > 1 && out.topology.job_id.empty()) {
    return invalid_argument(
        "init: a job of more than one rank needs a job_id (or HOROVOD_JOB_ID) that its ranks "
        "share");
  }
  if (o.process_set_count < 0 || (o.process_set_count > 0 && (o.process_set_ranks == nullptr ||
                                                              o.process_set_sizes == nullptr))) {
    return invalid_argument(
        concat("init: ", o.process_set_count, " process sets with null arrays"));
  }
  const int32_t* at = o.process_set_ranks;
  for (int32_t i = 0; i < o.process_set_count; ++i) {
    if (o.process_set_sizes[i] < 1)
      return invalid_argument(
          concat("init: process set ", i, " has ", o.process_set_sizes[i], " ranks"));
    out.process_sets.emplace_back(at, at + o.process_set_sizes[i]);
    at += o.process_set_sizes[i];
  }
  return Status::ok();
}

Result<std::optional<store::ExchangeCallbacks>> exchange_of(const hvd_init_options* o) {
  constexpr uint32_t kWithExchange = offsetof(hvd_init_options, exchange) + sizeof(hvd_exchange);
  if (o == nullptr || o->struct_size < kWithExchange) {
    return std::optional<store::ExchangeCallbacks>();
  }
  const hvd_exchange& e = o->exchange;
  if (e.set == nullptr && e.get == nullptr) return std::optional<store::ExchangeCallbacks>();
  if (e.set == nullptr || e.get == nullptr) {
    return invalid_argument(
        concat("init: exchange has no function '", e.set == nullptr ? "set" : "get", "'"));
  }
  return std::optional(store::ExchangeCallbacks{.context = e.context, .set = e.set, .get = e.get});
}

bootstrap::Forget forget_of(const hvd_init_options* o, const std::string& prefix) {
  constexpr uint32_t kWithRemove =
      offsetof(hvd_init_options, exchange_remove) + sizeof(hvd_init_options::exchange_remove);
  if (o == nullptr || o->struct_size < kWithRemove || o->exchange_remove == nullptr) return nullptr;
  return [remove = o->exchange_remove, context = o->exchange.context,
          prefix](const std::string& key) { remove(context, (prefix + key).c_str()); };
}

}  // namespace hvd::capi
