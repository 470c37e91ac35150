// job_layout.h - what lies where in a job's segment, and the words that ranks share outside
// channels.
//
//   JobHeader | RankBlock x size | MeetingBoard | channel pool | pool of met sets | arena x ranks
//   here
//
// A rank has a block whether it runs on this host or not; those of other hosts are kept by the
// mirror.
// Memory from a new segment is zero, and zero is a valid start value of every word here.
// Whoever reads an index or a length from here distrusts it: a corrupted segment must become a
// Status.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace hvd::shm {

inline constexpr uint64_t kJobMagic = 0x31'64'76'6f'72'6f'68'2bull;  // "+horovd1"
inline constexpr uint32_t kLayoutVersion = 3;
inline constexpr int kMaxRanksPerHost = 256;
inline constexpr int kMaxRanks = 1024;  // of a job

// The first failure of the job; whoever wins the compare-and-swap on `state` writes it.
struct FailureBlock {
  std::atomic<uint32_t> state;  // 0 none, 1 being written, 2 readable (release; pairs with acquire)
  int32_t code;
  int32_t rank;
  char text[1012];
};

struct alignas(kLineSpacing) JobHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t size;
  uint64_t epoch;
  uint64_t total_bytes;
  uint64_t channel_pool_offset, channel_pool_bytes;
  uint64_t arena_offset, arena_bytes;  // arena_bytes: of each rank
  int64_t cache_capacity;              // rank 0's: the replicated cache must have one size

  alignas(kLineSpacing) std::atomic<uint32_t> arrived;  // ranks that have mapped the segment
  // How many ranks sleep. Read after every publication, written rarely.
  alignas(kLineSpacing) std::atomic<uint32_t> parked;
  // How many ranks have begun to leave (shutdown). Never falls.
  alignas(kLineSpacing) std::atomic<uint32_t> leaving;
  std::atomic<uint32_t> first_leaver;  // 1 + the rank that began first; written before `leaving`
  alignas(kLineSpacing) FailureBlock failure;
};

// Bits of RankBlock::role. kRole: the right to step this rank's engine. kSubmit: short lock around
// publishing.
inline constexpr uint32_t kRoleBit = 1;
inline constexpr uint32_t kSubmitBit = 2;

enum class RankState : uint32_t { kStarting = 0, kRunning = 1, kLeaving = 2, kLeft = 3 };

// One entry of the ring of last operations.
struct alignas(kCacheLine) FlightEntry {
  std::atomic<uint32_t> number;  // 1, 2, ...; 0: never used. Written last (release)
  uint8_t kind;
  std::atomic<uint8_t> state;  // FlightState
  uint16_t channel;
  // Ticks; atomic because an entry may be used again while an old operation ends.
  std::atomic<uint64_t> submitted, done;
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> unnamed_number;  // of an operation without name; 0: it needs none
  uint8_t name_length;
  char name[79];  // its end, if it is longer
};
static_assert(sizeof(FlightEntry) == 128);
inline constexpr uint32_t kFlightEntries = 64;

struct alignas(kLineSpacing) RankBlock {
  alignas(kLineSpacing) std::atomic<uint32_t> role;
  // Sleeping: `park` is 1 while the role holder (or the background thread) sleeps; `want` says for
  // what.
  alignas(kLineSpacing) std::atomic<uint32_t> park;
  std::atomic<uint64_t> want;
  alignas(kLineSpacing) std::atomic<uint32_t> background;  // 1: the background thread is parked
  // Life signs.
  alignas(kLineSpacing) std::atomic<uint32_t> heartbeat;
  std::atomic<uint32_t> state;  // RankState
  std::atomic<int32_t> pid;
  std::atomic<int32_t> stall_signal;  // wanted when a stall report names this rank; 0: none
  int32_t global_rank;
  char hostname[64];
  uint64_t cpus[16];  // affinity mask, to count the cores of the job
  std::atomic<uint32_t> flight_next;
  FlightEntry flight[kFlightEntries];
};

inline RankBlock* rank_blocks(std::byte* base) {
  return reinterpret_cast<RankBlock*>(base + align_up(sizeof(JobHeader), 4096));
}

// Sizes and offsets of a job with `size` ranks, `here` of them on this host.
struct JobShape {
  uint64_t meetings_offset;
  uint64_t channel_pool_offset, channel_pool_bytes;
  uint64_t met_pool_offset, met_pool_bytes;
  uint64_t arena_offset, arena_bytes, total_bytes;
};
JobShape job_shape(int size, int here, uint64_t arena_bytes);

// What a sleeping rank waits for, packed into RankBlock::want.
//   kAny      every publication
//   kRecords  record `index` of every rank of the channel `where`
//   kFlag     the 32-bit word at offset `where` * 64 has reached `index` (wrapping)
enum class WantKind : uint32_t { kAny = 0, kRecords = 1, kFlag = 2 };
struct Want {
  WantKind kind = WantKind::kAny;
  uint32_t where = 0;  // channel id, or word offset / 64
  uint32_t index = 0;
};
inline constexpr uint32_t kWantPlaces = 0x3fffffffu;
inline uint64_t pack(const Want& want) {
  return static_cast<uint64_t>(want.kind) << 62 |
         (static_cast<uint64_t>(want.where) & kWantPlaces) << 32 | want.index;
}
inline Want unpack_want(uint64_t word) {
  return {static_cast<WantKind>(word >> 62), static_cast<uint32_t>(word >> 32) & kWantPlaces,
          static_cast<uint32_t>(word)};
}

// a has reached b, for counters that wrap.
inline bool reached(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) >= 0; }

}  // namespace hvd::shm
