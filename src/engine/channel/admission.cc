#include "engine/channel/admission.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/hash.h"
#include "base/text.h"
#include "negotiate/validate.h"

namespace hvd::engine {
namespace {

Status duplicate_name(wire::Kind kind, std::string_view name) {
  return invalid_argument(concat(
      wire::kind_lower_name(kind), " '", name,
      "': Duplicate tensor name: an operation with this name is still pending in this process "
      "set. Wait for it, or use another name"));
}

uint64_t group_key(const Submission& s) {
  uint64_t key = 0;
  for (const TensorArg& tensor : s.tensors) key = hash_bytes(tensor.name, key);
  return key;
}

Status check_pointers(const Submission& s, int32_t my_rank) {
  // What a broadcast sends comes from the root alone.
  if (s.kind == wire::Kind::kBroadcast && s.root_rank != my_rank) return Status::ok();
  for (const TensorArg& tensor : s.tensors) {
    uint64_t count = 1;
    for (const int64_t dim : tensor.shape) count *= static_cast<uint64_t>(dim);
    if (count > 0 && tensor.input == nullptr) {
      return invalid_argument(concat(wire::kind_lower_name(s.kind), " '", tensor.name,
                                     "': input is null, expected ", count, " elements of ",
                                     dtype_name(tensor.dtype)));
    }
  }
  return Status::ok();
}

void fill_all_buffers(const Submission& s, Operation& op) {
  op.buffers.resize(s.tensors.size());
  for (size_t t = 0; t < s.tensors.size(); ++t) {
    op.buffers[t] = {s.tensors[t].input, s.tensors[t].output, s.tensors[t].allocate,
                     s.tensors[t].allocate_context};
  }
}

}  // namespace

void Admission::fill(const Submission& s, Operation& op) const {
  op.kind = s.kind;
  op.on_complete = s.on_complete;
  op.callback_context = s.callback_context;
  const ProgressPolicy progress = tuning_.progress_of(s);
  op.needs_background = wants_background(s, progress);
  op.waiter_only = progress == ProgressPolicy::kWaiter;
  if (HVD_LIKELY(s.tensors.size() == 1 && op.buffers.size() == 1)) {
    const TensorArg& tensor = s.tensors[0];
    op.buffers[0] = {tensor.input, tensor.output, tensor.allocate, tensor.allocate_context};
    return;
  }
  fill_all_buffers(s, op);
}

Status Admission::admit(const Submission& s, Operation& op) {
  if (HVD_UNLIKELY(is_closed())) return closed_status_;
  if (HVD_LIKELY(s.tensors.size() == 1 && !s.tensors[0].name.empty())) {
    NameState* state = names_.find(s.tensors[0].name, hash_bytes(s.tensors[0].name));
    if (HVD_LIKELY(state != nullptr)) {
      if (state->in_flight.load(std::memory_order_relaxed))
        return duplicate_name(s.kind, s.tensors[0].name);
      if (state->slot != nullptr && says_the_same(s, state->slot->request_of(members_.me()))) {
        return admit_prepared(state->slot, state, s, op);
      }
    }
    return admit_miss(s, op);
  }
  const bool is_unnamed = s.tensors.empty() || s.tensors[0].name.empty();
  const CachedPtr slot =
      is_unnamed ? names_.find_unnamed(signature_hash(s)) : names_.find_group(group_key(s));
  if (slot == nullptr || !says_the_same(s, slot->request_of(members_.me())))
    return admit_miss(s, op);
  HVD_TRY(check_pointers(s, members_.my_rank()));
  op.is_used_up = true;
  HVD_TRY(take_names(s, op));
  op.is_unnamed = is_unnamed;
  return admit_prepared(slot, nullptr, s, op);
}

Status Admission::admit_prepared(const CachedPtr& slot, NameState* name, const Submission& s,
                                 Operation& op) {
  if (HVD_UNLIKELY(is_closed())) return closed_status_;
  if (name != nullptr) {
    if (name->in_flight.load(std::memory_order_relaxed)) return duplicate_name(s.kind, name->name);
    if (HVD_UNLIKELY(s.tensors[0].input == nullptr)) HVD_TRY(check_pointers(s, members_.my_rank()));
    name->in_flight.store(true, std::memory_order_relaxed);
  }
  fill(s, op);
  op.name = name;
  if (op.slot != slot) op.slot = slot;
  op.bytes = slot->total_bytes;
  statistics_.cache_hits.add();
  return Status::ok();
}

Status Admission::admit_miss(const Submission& s, Operation& op) {
  op.is_used_up = true;
  op.slot.reset();  // of the operation before this one
  auto request = std::make_unique<wire::Request>(make_request(s));
  HVD_TRY(negotiate::validate_local(*request, members_.ranks()));
  if (s.kind == wire::Kind::kJoin) {
    if (is_joining_) return duplicate_name(s.kind, "join");
    is_joining_ = true;
    join_operation_ = &op;
  }
  HVD_TRY(check_pointers(s, members_.my_rank()));
  HVD_TRY(take_names(s, op));
  fill(s, op);
  op.is_unnamed = op.name == nullptr && op.names.empty();
  op.bytes = 0;
  for (const wire::TensorSpec& tensor : request->tensors) op.bytes += tensor.bytes();
  op.request = std::move(request);
  statistics_.cache_misses.add();
  return Status::ok();
}

// All names or none.
Status Admission::take_names(const Submission& s, Operation& op) {
  if (s.tensors.empty() || s.tensors[0].name.empty()) return Status::ok();
  for (const TensorArg& tensor : s.tensors) {
    const NameState* state = names_.find(tensor.name, hash_bytes(tensor.name));
    if (state != nullptr && state->in_flight.load(std::memory_order_relaxed))
      return duplicate_name(s.kind, tensor.name);
  }
  for (const TensorArg& tensor : s.tensors) {
    NameState* state = names_.find_or_add(tensor.name, hash_bytes(tensor.name));
    if (state == nullptr) {
      for (NameState* taken : op.names) taken->in_flight.store(false, std::memory_order_relaxed);
      return invalid_argument(concat(
          "'", tensor.name, "' has the same hash as another name in use; choose another name"));
    }
    state->in_flight.store(true, std::memory_order_relaxed);
    op.names.push_back(state);
  }
  if (op.names.size() == 1) {
    op.name = op.names[0];
    op.names.clear();
  }
  return Status::ok();
}

void Admission::learn(const CachedPtr& slot, const std::vector<negotiate::SlotPtr>& evicted) {
  for (const negotiate::SlotPtr& gone : evicted) names_.forget(*gone);
  const auto& tensors = slot->requests[0].tensors;
  if (slot->is_unnamed) {
    names_.set_unnamed(slot->key, slot);
  } else if (tensors.size() > 1) {
    names_.set_group(slot->key, slot);
  } else if (NameState* state = names_.find_or_add(tensors[0].name, slot->key)) {
    state->slot = slot;
  }
}

void Admission::forget_names(const Operation& op) {
  if (op.name != nullptr) names_.forget_if_idle(op.name);
  for (NameState* state : op.names) names_.forget_if_idle(state);
}

Operation* Admission::end_join(const UnnamedCounts& agreed) {
  Operation* const op = join_operation_;
  forget_join();
  for (size_t kind = 0; kind < unnamed_.size(); ++kind)
    unnamed_[kind] = std::max(unnamed_[kind], agreed[kind]);
  return op;
}

void Admission::forget_join() {
  join_operation_ = nullptr;
  is_joining_ = false;
}

void Admission::close(const Status& status) {
  if (!is_closed()) closed_status_ = status;
  is_closed_.store(true, std::memory_order_relaxed);
}

}  // namespace hvd::engine
