#include "mpi/pipe.h"

#include <algorithm>
#include <cstring>

namespace hvd::mpi {

Pipe::Pipe(Api& api, const PipeEnd& end) : api_(api), end_(end) {}

// ---- sending

Result<bool> Pipe::free_slot() {
  Slot& slot = out_[out_next_];
  if (!slot.is_busy) return true;
  HVD_TRY_ASSIGN(const bool is_through, api_.test(slot.request, nullptr));
  slot.is_busy = !is_through;
  return is_through;
}

Status Pipe::send_slot(size_t bytes) {
  Slot& slot = out_[out_next_];
  HVD_TRY(api_.send(end_.comm, {slot.data.get(), bytes}, end_.peer, end_.tag, slot.request));
  slot.is_busy = true;
  out_next_ = (out_next_ + 1) % kSlots;
  return Status::ok();
}

Result<size_t> Pipe::send(std::span<const iovec> parts) {
  size_t taken = 0, used = 0;  // `used` of the first part
  for (;;) {
    while (!parts.empty() && parts.front().iov_len == used) {
      parts = parts.subspan(1);
      used = 0;
    }
    if (parts.empty()) return taken;
    HVD_TRY_ASSIGN(const bool is_free, free_slot());
    if (!is_free) return taken;
    Slot& slot = out_[out_next_];
    if (slot.data == nullptr) slot.data = std::make_unique<std::byte[]>(end_.slot_bytes);
    size_t filled = 0;
    while (!parts.empty() && filled < end_.slot_bytes) {
      const iovec& part = parts.front();
      const size_t here = std::min(part.iov_len - used, end_.slot_bytes - filled);
      std::memcpy(slot.data.get() + filled, static_cast<const std::byte*>(part.iov_base) + used,
                  here);
      filled += here;
      used += here;
      if (used < part.iov_len) continue;
      parts = parts.subspan(1);
      used = 0;
    }
    HVD_TRY(send_slot(filled));
    taken += filled;
  }
}

// ---- receiving

Status Pipe::post_receive(Slot& slot) {
  if (slot.data == nullptr) slot.data = std::make_unique<std::byte[]>(end_.slot_bytes);
  HVD_TRY(api_.receive(end_.comm, {slot.data.get(), end_.slot_bytes}, end_.peer, end_.tag,
                       slot.request));
  slot.is_busy = true;
  return Status::ok();
}

// Messages of one pipe are received in the order in which the slots were posted.
Result<bool> Pipe::next_message() {
  if (!is_posted_) {
    for (Slot& slot : in_) HVD_TRY(post_receive(slot));
    is_posted_ = true;
  }
  Slot& slot = in_[in_next_];
  Arrival arrival;
  HVD_TRY_ASSIGN(const bool has_come, api_.test(slot.request, &arrival));
  if (!has_come) return false;
  slot.is_busy = false;
  read_ = 0;
  filled_ = arrival.bytes;
  if (arrival.bytes == 0) has_ended_ = true;
  return true;
}

Result<Pipe::Received> Pipe::receive(std::span<const iovec> parts) {
  Received received;
  size_t used = 0;
  for (;;) {
    while (!parts.empty() && parts.front().iov_len == used) {
      parts = parts.subspan(1);
      used = 0;
    }
    if (parts.empty()) return received;
    if (!has_buffered()) {
      if (has_ended_) {
        received.is_end = received.bytes == 0;
        return received;
      }
      HVD_TRY_ASSIGN(const bool has_come, next_message());
      if (!has_come) return received;
      continue;
    }
    Slot& slot = in_[in_next_];
    const size_t here = std::min(parts.front().iov_len - used, filled_ - read_);
    std::memcpy(static_cast<std::byte*>(parts.front().iov_base) + used, slot.data.get() + read_,
                here);
    used += here;
    read_ += here;
    received.bytes += here;
    if (has_buffered()) continue;
    HVD_TRY(post_receive(slot));
    in_next_ = (in_next_ + 1) % kSlots;
  }
}

// ---- the end

Result<bool> Pipe::finish() {
  if (!has_sent_end_) {
    HVD_TRY_ASSIGN(has_sent_end_, free_slot());
    if (has_sent_end_) HVD_TRY(send_slot(0));
  }
  while (!has_ended_) {
    if (has_buffered()) {
      read_ = filled_;
      HVD_TRY(post_receive(in_[in_next_]));
      in_next_ = (in_next_ + 1) % kSlots;
    }
    HVD_TRY_ASSIGN(const bool has_come, next_message());
    if (!has_come) break;
  }
  bool is_idle = has_sent_end_ && has_ended_;
  for (Slot& slot : out_) {
    if (!slot.is_busy) continue;
    HVD_TRY_ASSIGN(const bool is_through, api_.test(slot.request, nullptr));
    slot.is_busy = !is_through;
    is_idle = is_idle && is_through;
  }
  if (is_idle) abandon();  // the receives behind the last message
  return is_idle;
}

void Pipe::abandon() {
  for (Slot& slot : in_) {
    if (slot.is_busy) slot.is_busy = !api_.cancel(slot.request).is_ok();
  }
}

}  // namespace hvd::mpi
