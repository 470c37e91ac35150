// board.h - the shared words of one channel's negotiation: every rank's stream of records, its
// eager ring for payloads and messages, and the decision log. Layout and access only; who writes
// what when is described in order.h. Offsets read from a peer are checked here before they become
// pointers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/explore.h"
#include "shm/job_layout.h"

namespace hvd::control {

inline constexpr uint32_t kRecords = kIsExplored ? 8 : 512;  // per stream; a power of two
inline constexpr uint32_t kLogEntries = kIsExplored ? 16 : 4096;
inline constexpr size_t kEagerBytes = kIsExplored ? 2 << 10 : 512 << 10;
inline constexpr size_t kInlineBytes = 104;

// Slot numbers that are not slots.
inline constexpr uint32_t kNoSlot = 0xffffffffu;    // the payload is a request message
inline constexpr uint32_t kJoinSlot = 0xfffffffeu;  // the rank has joined
inline constexpr uint32_t kFirstSpecialSlot = kJoinSlot;

enum RecordFlags : uint32_t {
  kPayloadInline = 1,  // payload in the record
  kPayloadEager = 2,   // payload in the eager ring at `offset`
  // Message too long for the ring: at offset * 256 in the arena of the rank that the record's
  // payload names (uint32): the sender, or the rank that keeps its mirror on this host.
  kPayloadArena = 4,
  kSharedBuffers = 8,  // payload is the list of arena offsets of the tensors (uint64 each)
  kNoPayload = 16,     // payload stays in the user's buffers: everybody takes the large path
};
// Above the flags, in records of member 0: the tuning that holds from this operation on.
inline constexpr int kTuningShift = 8;
inline constexpr uint32_t kTuningMask = ~uint32_t{0} << kTuningShift;

struct alignas(kLineSpacing) Record {
  std::atomic<uint32_t> seq;  // index + 1, stored last (release); 0 before the first lap
  uint32_t slot;
  uint32_t offset;
  uint32_t length;
  uint32_t flags;
  uint32_t view;  // version of the slot table that the writer had seen
  std::byte payload[kInlineBytes];
};
static_assert(sizeof(Record) == kLineSpacing);

class Board {
 public:
  static uint64_t region_bytes(int size);
  Board() = default;
  Board(std::byte* region, int size);

  int size() const { return size_; }

  Record& record(int rank, uint32_t index) const {
    return *reinterpret_cast<Record*>(records_ + static_cast<size_t>(rank) * kRecordStride +
                                      static_cast<size_t>(index & (kRecords - 1)) * sizeof(Record));
  }
  bool has(int rank, uint32_t index) const {
    return record(rank, index).seq.load(std::memory_order_acquire) == index + 1;
  }
  bool present_everywhere(uint32_t index) const {
    for (int rank = 0; rank < size_; ++rank) {
      if (!has(rank, index)) return false;
    }
    return true;
  }
  // A sequence number that no writer can have stored where record `index` is expected.
  bool is_nonsense(int rank, uint32_t index) const;

  std::byte* eager(int rank) const { return eager_ + static_cast<size_t>(rank) * kEagerStride; }
  // [offset, offset + length) of a rank's eager ring; empty data() if it does not lie inside.
  std::span<std::byte> eager_range(int rank, uint32_t offset, uint32_t length) const {
    if (offset > kEagerBytes || length > kEagerBytes - offset) return {};
    return {eager(rank) + offset, length};
  }

  // Records of `stream` below this index are no longer needed by `reader`.
  std::atomic<uint32_t>& low(int reader, int stream) const {
    return reinterpret_cast<std::atomic<uint32_t>*>(lows_ + static_cast<size_t>(reader) *
                                                                low_stride_)[stream];
  }
  // Log entries below this index were read by `reader`.
  std::atomic<uint32_t>& log_seen(int reader) const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(
        lows_ + static_cast<size_t>(reader + 1) * low_stride_ - kLineSpacing);
  }
  // 1: the member takes no further part in this channel.
  std::atomic<uint32_t>& closed(int member) const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(
        lows_ + static_cast<size_t>(member + 1) * low_stride_ - kCacheLine);
  }
  std::atomic<uint64_t>& log(uint32_t index) const { return log_[index % kLogEntries]; }
  // The upper 16 bits of log entry `index`: they tell it from an older one at the same place.
  static uint64_t log_lap(uint32_t index) { return (index / kLogEntries + 1) & 0xffff; }
  bool has_log(uint32_t index) const {
    return log(index).load(std::memory_order_acquire) >> 48 == log_lap(index);
  }

 private:
  // Odd strides: streams of different ranks must not fall on the same cache sets.
  static constexpr size_t kRecordStride = (kRecords + 5) * sizeof(Record);
  static constexpr size_t kEagerStride = kEagerBytes + 5 * 4096 + 256;

  int size_ = 0;
  size_t low_stride_ = 0;
  std::byte* lows_ = nullptr;
  std::atomic<uint64_t>* log_ = nullptr;
  std::byte* records_ = nullptr;
  std::byte* eager_ = nullptr;
};

}  // namespace hvd::control
