// The submission side of a channel: everything here runs under the submit lock, in the caller's
// thread.
#include <cstring>

#include "base/cpu.h"
#include "base/explore.h"
#include "base/hash.h"
#include "base/text.h"
#include "engine/channel/channel.h"
#include "engine/channel/works.h"
#include "negotiate/validate.h"
#include "wire/codec.h"

namespace hvd::engine {
namespace {

using control::Record;
using negotiate::SlotPtr;

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

}  // namespace

void Channel::fill_buffers(const Submission& s, Operation& op) {
  op.kind = s.kind;
  op.channel = this;
  op.on_complete = s.on_complete;
  op.callback_context = s.callback_context;
  const ProgressPolicy progress = progress_of(s);
  op.needs_background = wants_background(s, progress);
  op.waiter_only = progress == ProgressPolicy::kWaiter;
  if (HVD_LIKELY(s.tensors.size() == 1 && op.buffers.size() == 1)) {
    const TensorArg& tensor = s.tensors[0];
    op.buffers[0] = {tensor.input, tensor.output, tensor.allocate, tensor.allocate_context};
    return;
  }
  fill_all_buffers(s, op);
}

void Channel::fill_all_buffers(const Submission& s, Operation& op) {
  op.buffers.resize(s.tensors.size());
  for (size_t t = 0; t < s.tensors.size(); ++t) {
    op.buffers[t] = {s.tensors[t].input, s.tensors[t].output, s.tensors[t].allocate,
                     s.tensors[t].allocate_context};
  }
}

Status Channel::admit(const Submission& s, Operation& op) {
  if (HVD_UNLIKELY(is_closed())) return closed_status_;
  if (HVD_LIKELY(s.tensors.size() == 1 && !s.tensors[0].name.empty())) {
    NameState* state = names_.find(s.tensors[0].name, hash_bytes(s.tensors[0].name));
    if (HVD_LIKELY(state != nullptr)) {
      if (state->in_flight.load(std::memory_order_relaxed))
        return duplicate_name(s.kind, s.tensors[0].name);
      if (state->slot != nullptr && says_the_same(s, state->slot->request_of(me()))) {
        return admit_prepared(state->slot, state, s, op);
      }
    }
    return admit_miss(s, op);
  }
  const bool is_unnamed = s.tensors.empty() || s.tensors[0].name.empty();
  const SlotPtr slot =
      is_unnamed ? names_.find_unnamed(signature_hash(s)) : names_.find_group(group_key(s));
  if (slot == nullptr || !says_the_same(s, slot->request_of(me()))) return admit_miss(s, op);
  HVD_TRY(check_pointers(s, my_rank()));
  op.is_used_up = true;
  HVD_TRY(take_names(s, op));
  op.is_unnamed = is_unnamed;
  return admit_prepared(slot, nullptr, s, op);
}

Status Channel::admit_prepared(const SlotPtr& slot, NameState* name, const Submission& s,
                               Operation& op) {
  if (HVD_UNLIKELY(is_closed())) return closed_status_;
  if (name != nullptr) {
    if (name->in_flight.load(std::memory_order_relaxed)) return duplicate_name(s.kind, name->name);
    if (HVD_UNLIKELY(s.tensors[0].input == nullptr)) HVD_TRY(check_pointers(s, my_rank()));
    name->in_flight.store(true, std::memory_order_relaxed);
  }
  fill_buffers(s, op);
  op.name = name;
  if (op.slot != slot) op.slot = slot;
  op.bytes = slot->total_bytes;
  statistics_.cache_hits.add();
  return Status::ok();
}

Status Channel::admit_miss(const Submission& s, Operation& op) {
  op.is_used_up = true;
  op.slot.reset();  // of the operation before this one
  auto request = std::make_unique<wire::Request>(make_request(s));
  HVD_TRY(negotiate::validate_local(*request, options_.ranks));
  if (s.kind == wire::Kind::kJoin) {
    if (is_joining_) return duplicate_name(s.kind, "join");
    is_joining_ = true;
    join_operation_ = &op;
  }
  HVD_TRY(check_pointers(s, my_rank()));
  HVD_TRY(take_names(s, op));
  fill_buffers(s, op);
  op.is_unnamed = op.name == nullptr && op.names.empty();
  op.bytes = 0;
  for (const wire::TensorSpec& tensor : request->tensors) op.bytes += tensor.bytes();
  op.request = std::move(request);
  statistics_.cache_misses.add();
  return Status::ok();
}

// All names or none.
Status Channel::take_names(const Submission& s, Operation& op) {
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

uint32_t Channel::watermark() {
  schedule_point("look for room");
  uint32_t least = board_.low(0, me()).load(std::memory_order_acquire);
  for (int reader = 1; reader < size(); ++reader) {
    const uint32_t low = board_.low(reader, me()).load(std::memory_order_acquire);
    if (!shm::reached(low, least)) least = low;
  }
  watermark_ = least;
  return least;
}

bool Channel::has_room() {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  return tail - watermark_ < control::kRecords - 1 || tail - watermark() < control::kRecords - 1;
}

void Channel::publish(Operation& op) {
  note_submission(op);
  append_or_queue(op);
}

void Channel::publish_now(Operation& op) {
  append_or_queue(op);
  note_submission(op);
}

void Channel::note_submission(Operation& op) {
  const std::string_view name = op.name != nullptr  ? std::string_view(op.name->name)
                                : !op.names.empty() ? std::string_view(op.names[0]->name)
                                                    : std::string_view();
  uint64_t unnamed_number = 0;
  if (HVD_UNLIKELY(op.is_unnamed && !op.buffers.empty()))
    unnamed_number = op.unnamed_number = ++unnamed_submitted_[static_cast<size_t>(op.kind)];
  op.flight = flight_.begin(op.kind, options_.id, op.bytes, name, unnamed_number);
  if (trace::Timeline* timeline = timeline_.load(std::memory_order_acquire);
      HVD_UNLIKELY(timeline != nullptr) && op.kind != wire::Kind::kBarrier) {
    op.is_traced = true;
    const auto kind = wire::kind_name(op.kind);
    for (size_t t = 0; t < op.buffers.size(); ++t)
      timeline->negotiate_start(trace_name(op, t), kind);
  }
}

void Channel::append_or_queue(Operation& op) {
  if (HVD_LIKELY(overflow_.empty() && has_room())) return append_record(op);
  overflow_.push_back(&op);
  has_overflow_.store(true, std::memory_order_relaxed);
}

void Channel::flush_overflow() {
  while (!overflow_.empty() && has_room()) {
    append_record(*overflow_.front());
    overflow_.pop_front();
  }
  has_overflow_.store(!overflow_.empty(), std::memory_order_relaxed);
}

void Channel::append_record(Operation& op) {
  const uint32_t index = tail_.load(std::memory_order_relaxed);
  own_[index % control::kRecords] = &op;
  Record& record = board_.record(me(), index);
  if (op.slot != nullptr && HVD_UNLIKELY(!op.slot->is_live)) {
    // Evicted while the operation waited for room: say it in full.
    op.request = std::make_unique<wire::Request>(op.slot->request_of(me()));
    op.slot.reset();
  }
  if (op.slot != nullptr) {
    write_payload(op, record, index);
    record.slot = op.slot->id;
  } else if (op.kind == wire::Kind::kJoin) {
    eager_.skip(index);
    record.slot = control::kJoinSlot;
    record.flags = control::kNoPayload;
    record.length = 0;
  } else {
    write_message(op, record, index);
    record.slot = control::kNoSlot;
  }
  record.flags |= proposal_.load(std::memory_order_relaxed);
  record.view = slots_.version();
  schedule_point("publish");
  tail_.store(index + 1, std::memory_order_relaxed);
  record.seq.store(index + 1, std::memory_order_release);
  flush_mirror();
  // The next record's line comes home while we wait for the peers, not when it is written.
  prefetch_for_write(&board_.record(me(), index + 1));
}

void Channel::write_payload(Operation& op, Record& record, uint32_t index) {
  const negotiate::Slot& slot = *op.slot;
  if (HVD_UNLIKELY(slot.may_share && job_.segment().contains(op.buffers[0].input, 1)) &&
      write_shared_offsets(op, record, index))
    return;
  record.length = slot.deposit_bytes;
  if (slot.is_small(small_limit_)) {
    if (slot.deposit_bytes <= control::kInlineBytes) {
      // Payload before the record's other words: a peer polls this line, and every early touch
      // costs a transfer.
      eager_.skip(index);
      if (slot.deposit_bytes > 0) deposit(op, record.payload);
      record.flags = control::kPayloadInline;
      return;
    }
    if (eager_.wants_watermark(slot.deposit_bytes)) watermark();
    if (const auto at = eager_.take(index, slot.deposit_bytes, watermark_)) {
      deposit(op, board_.eager(me()) + *at);
      record.offset = *at;
      record.flags = control::kPayloadEager;
      return;
    }
  }
  eager_.skip(index);
  record.flags = control::kNoPayload;
}

void Channel::deposit(const Operation& op, std::byte* to) const {
  if (HVD_LIKELY(op.slot->is_plain)) {
    const uint32_t bytes = op.slot->deposit_bytes;
    if (bytes == sizeof(uint32_t)) {
      std::memcpy(to, op.buffers[0].input, sizeof(uint32_t));  // one store
    } else if (bytes <= control::kInlineBytes) {
      std::memcpy(to, op.buffers[0].input, bytes);
    } else {
      kernels_.copy_to_shared(to, op.buffers[0].input, bytes);
    }
    return;
  }
  write_deposit(op, op.slot->request_of(me()), set_view(), to);
}

// In place, and every buffer in shared memory: peers get the offsets instead of the data.
bool Channel::write_shared_offsets(Operation& op, Record& record, uint32_t index) {
  shm::Job& job = job_;
  if (size() == 1) return false;
  const auto& tensors = op.slot->request_of(me()).tensors;
  const auto bytes = static_cast<uint32_t>(tensors.size() * sizeof(uint64_t));
  if (bytes > small_limit_) return false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (op.buffers[t].input != op.buffers[t].output ||
        !job.arena().contains(op.buffers[t].input, tensors[t].bytes()))
      return false;
  }
  std::byte* to = record.payload;
  record.flags = control::kSharedBuffers | control::kPayloadInline;
  if (bytes > control::kInlineBytes) {
    watermark();
    const auto at = eager_.take(index, bytes, watermark_);
    if (!at) return false;
    to = board_.eager(me()) + *at;
    record.offset = *at;
    record.flags = control::kSharedBuffers | control::kPayloadEager;
  } else {
    eager_.skip(index);
  }
  record.length = bytes;
  for (size_t t = 0; t < tensors.size(); ++t, to += sizeof(uint64_t)) {
    const uint64_t offset = job.arena().offset_of(op.buffers[t].input);
    std::memcpy(to, &offset, sizeof offset);
  }
  return true;
}

void Channel::write_message(Operation& op, Record& record, uint32_t index) {
  const std::vector<std::byte> message = wire::encode(*op.request);
  const auto bytes = static_cast<uint32_t>(message.size());
  record.length = bytes;
  if (bytes <= control::kInlineBytes) {
    eager_.skip(index);
    std::memcpy(record.payload, message.data(), bytes);
    record.flags = control::kPayloadInline;
    return;
  }
  watermark();
  free_read_messages();
  if (const auto at = eager_.take(index, bytes, watermark_)) {
    std::memcpy(board_.eager(me()) + *at, message.data(), bytes);
    record.offset = *at;
    record.flags = control::kPayloadEager;
    return;
  }
  // Too long for the ring, or the ring is full: the arena has room for it until the operation is
  // complete.
  eager_.skip(index);
  record.flags = control::kPayloadArena;
  record.offset = UINT32_MAX;  // no memory: peers refuse it, and the job ends with a clear text
  if (auto memory = job_.arena().alloc(bytes)) {
    messages_.emplace_back(index, *memory);
    const auto owner = static_cast<uint32_t>(job_.rank());
    std::memcpy(record.payload, &owner, sizeof owner);
    std::memcpy(*memory, message.data(), bytes);
    record.offset = static_cast<uint32_t>(job_.arena().offset_of(*memory) / shm::Arena::kAlignment);
  }
}

void Channel::free_read_messages() {
  while (!messages_.empty() && shm::reached(watermark_, messages_.front().first + 1)) {
    (void)job_.arena().free(messages_.front().second).is_ok();
    messages_.pop_front();
  }
}

void Channel::ring_sleepers() {
  link_.bell().wake_for_records(options_.id,
                                [&](uint32_t index) { return board_.present_everywhere(index); });
}

}  // namespace hvd::engine
