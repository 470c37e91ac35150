#include "engine/channel/outbox.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "base/text.h"
#include "wire/codec.h"

namespace hvd::engine {

using control::Record;

Outbox::~Outbox() {
  for (const auto& [index, message] : messages_) view_.job.arena().forget(message);
}

uint32_t Outbox::find_watermark() {
  schedule_point("look for room");
  uint32_t least = view_.board.low(0, me()).load(std::memory_order_acquire);
  for (int reader = 1; reader < view_.members.size(); ++reader) {
    const uint32_t low = view_.board.low(reader, me()).load(std::memory_order_acquire);
    if (!shm::reached(low, least)) least = low;
  }
  watermark_ = least;
  return least;
}

void Outbox::queue_up(Operation& op) {
  queue_.push_back(&op);
  has_queue_.store(true, std::memory_order_relaxed);
}

std::vector<Operation*> Outbox::take_queue() {
  std::vector<Operation*> taken(queue_.begin(), queue_.end());
  queue_.clear();
  has_queue_.store(false, std::memory_order_relaxed);
  return taken;
}

void Outbox::flush() {
  while (!queue_.empty() && has_room()) {
    append_record(*queue_.front());
    queue_.pop_front();
  }
  has_queue_.store(!queue_.empty(), std::memory_order_relaxed);
}

void Outbox::append_record(Operation& op) {
  const uint32_t index = tail();
  own_[index % control::kRecords] = &op;
  Record& record = view_.board.record(me(), index);
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
  record.flags |= view_.tuning.proposal();
  record.view = view_.slots.version();
  schedule_point("publish");
  tail_.store(index + 1, std::memory_order_relaxed);
  record.seq.store(index + 1, std::memory_order_release);
  view_.mirror.flush();
  // The next record's line comes home while we wait for the peers, not when it is written.
  prefetch_for_write(&view_.board.record(me(), index + 1));
}

void Outbox::write_payload(Operation& op, Record& record, uint32_t index) {
  const CachedOperation& slot = *op.slot;
  if (HVD_UNLIKELY(slot.may_share && view_.job.segment().contains(op.buffers[0].input, 1)) &&
      write_shared_offsets(op, record, index))
    return;
  record.length = slot.deposit_bytes;
  if (slot.is_small(view_.tuning.small_limit())) {
    if (slot.deposit_bytes <= control::kInlineBytes) {
      // Payload before the record's other words: a peer polls this line, and every early touch
      // costs a transfer.
      eager_.skip(index);
      if (slot.deposit_bytes > 0) deposit(op, record.payload);
      record.flags = control::kPayloadInline;
      return;
    }
    if (eager_.wants_watermark(slot.deposit_bytes)) find_watermark();
    if (const auto at = eager_.take(index, slot.deposit_bytes, watermark_)) {
      deposit(op, view_.board.eager(me()) + *at);
      record.offset = *at;
      record.flags = control::kPayloadEager;
      return;
    }
  }
  eager_.skip(index);
  record.flags = control::kNoPayload;
}

void Outbox::deposit(const Operation& op, std::byte* to) const {
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
  write_deposit(op, op.slot->request_of(me()), view_.set, to);
}

// In place, and every buffer in shared memory: peers get the offsets instead of the data.
bool Outbox::write_shared_offsets(Operation& op, Record& record, uint32_t index) {
  shm::Job& job = view_.job;
  if (view_.members.size() == 1) return false;
  const auto& tensors = op.slot->request_of(me()).tensors;
  const auto bytes = static_cast<uint32_t>(tensors.size() * sizeof(uint64_t));
  if (bytes > view_.tuning.small_limit()) return false;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (op.buffers[t].input != op.buffers[t].output ||
        !job.arena().contains(op.buffers[t].input, tensors[t].bytes()))
      return false;
  }
  std::byte* to = record.payload;
  record.flags = control::kSharedBuffers | control::kPayloadInline;
  if (bytes > control::kInlineBytes) {
    find_watermark();
    const auto at = eager_.take(index, bytes, watermark_);
    if (!at) return false;
    to = view_.board.eager(me()) + *at;
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

void Outbox::write_message(Operation& op, Record& record, uint32_t index) {
  const std::vector<std::byte> message = wire::encode(*op.request);
  const auto bytes = static_cast<uint32_t>(message.size());
  record.length = bytes;
  if (bytes <= control::kInlineBytes) {
    eager_.skip(index);
    std::memcpy(record.payload, message.data(), bytes);
    record.flags = control::kPayloadInline;
    return;
  }
  find_watermark();
  free_read_messages();
  if (const auto at = eager_.take(index, bytes, watermark_)) {
    std::memcpy(view_.board.eager(me()) + *at, message.data(), bytes);
    record.offset = *at;
    record.flags = control::kPayloadEager;
    return;
  }
  // Too long for the ring, or the ring is full: the arena has room for it until the operation is
  // complete.
  eager_.skip(index);
  record.flags = control::kPayloadArena;
  record.offset = UINT32_MAX;  // no memory: peers refuse it, and the job ends with a clear text
  if (auto memory = view_.job.arena().alloc(bytes)) {
    messages_.emplace_back(index, *memory);
    const auto owner = static_cast<uint32_t>(view_.job.rank());
    std::memcpy(record.payload, &owner, sizeof owner);
    std::memcpy(*memory, message.data(), bytes);
    record.offset =
        static_cast<uint32_t>(view_.job.arena().offset_of(*memory) / shm::Arena::kAlignment);
  }
}

void Outbox::free_read_messages() {
  while (!messages_.empty() && shm::reached(watermark_, messages_.front().first + 1)) {
    (void)view_.job.arena().free(messages_.front().second).is_ok();
    messages_.pop_front();
  }
}

Status Outbox::check(SubmitLock& lock) {
  // Only tried: the lock's own word may be what is wrong.
  if (!lock.try_lock()) return Status::ok();
  Status status;
  const uint32_t count = std::min(tail() - find_watermark(), control::kRecords - 1);
  for (uint32_t index = tail() - count; index != tail() && status.is_ok(); ++index) {
    if (view_.board.has(me(), index)) continue;
    status = corrupted(
        concat("record ", index, " of rank ", view_.members.my_rank(), " has the sequence number ",
               view_.board.record(me(), index).seq.load(), ", it wrote ", index + 1));
  }
  lock.unlock();
  return status;
}

}  // namespace hvd::engine
