// outbox.h - the own stream of a channel: turns operations into records, with their payloads and
// messages, and keeps those for which the ring has no room. Never blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/engine_role.h"
#include "base/explore.h"
#include "base/status.h"
#include "control/board.h"
#include "control/eager_ring.h"
#include "engine/channel/channel_tuning.h"
#include "engine/channel/membership.h"
#include "engine/channel/mirror_line.h"
#include "engine/channel/small_operations.h"
#include "engine/operation/operation.h"
#include "engine/operation/role.h"
#include "negotiate/slot_table.h"
#include "reduce/kernels.h"
#include "shm/job.h"

namespace hvd::engine {

// What records are made of and where they go; all of it outlives the outbox.
struct OutboxView {
  const Membership& members;
  const SetView& set;
  shm::Job& job;
  const control::Board& board;
  const negotiate::SlotTable& slots;
  const ChannelTuning& tuning;
  const MirrorLine& mirror;
};

class Outbox {
 public:
  explicit Outbox(const OutboxView& view) : view_(view), kernels_(kernels()) {}
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void append_or_queue(Operation& op) HVD_REQUIRES(submit_side) {
    if (HVD_LIKELY(queue_.empty() && has_room())) return append_record(op);
    queue_up(op);
  }
  // Appends what found no room.
  void flush() HVD_REQUIRES(submit_side);
  // The stream has ended: what found no room.
  std::vector<Operation*> take_queue() HVD_REQUIRES(submit_side);

  // ---- any thread; the role only compares ----
  bool has_queue() const { return has_queue_.load(std::memory_order_relaxed); }
  uint32_t tail() const { return tail_.load(std::memory_order_relaxed); }
  // The operation behind a record of the own stream that is not agreed yet.
  Operation* operation(uint32_t index) const { return own_[index % control::kRecords]; }

  // Are the records that some rank may still have to read what was written?
  Status check(SubmitLock& lock);

 private:
  friend struct explore::Probe;
  void queue_up(Operation& op) HVD_REQUIRES(submit_side);
  bool has_room() HVD_REQUIRES(submit_side) {
    return tail() - watermark_ < control::kRecords - 1 ||
           tail() - find_watermark() < control::kRecords - 1;
  }
  uint32_t find_watermark() HVD_REQUIRES(submit_side);
  void append_record(Operation& op) HVD_REQUIRES(submit_side);
  void write_payload(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  void write_message(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  bool write_shared_offsets(Operation& op, control::Record& record, uint32_t index)
      HVD_REQUIRES(submit_side);
  void deposit(const Operation& op, std::byte* to) const HVD_REQUIRES(submit_side);
  void free_read_messages() HVD_REQUIRES(submit_side);
  int me() const { return view_.members.me(); }

  const OutboxView view_;
  const Kernels& kernels_;
  control::EagerRing eager_ HVD_GUARDED_BY(submit_side);
  std::array<Operation*, control::kRecords> own_{};  // by record index
  std::atomic<uint32_t> tail_{0};                    // records published
  uint32_t watermark_ HVD_GUARDED_BY(submit_side) = 0;
  std::deque<Operation*> queue_ HVD_GUARDED_BY(submit_side);  // the ring was full
  std::atomic<bool> has_queue_{false};
  // Request messages in the arena, by record: freed when all peers have read the record.
  std::deque<std::pair<uint32_t, std::byte*>> messages_;
};

}  // namespace hvd::engine
