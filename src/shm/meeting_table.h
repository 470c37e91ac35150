// meeting_table.h - process sets that their members open among themselves: who has come to which
// meeting, who has left the set, and where its channel lies in the segment. One table per job, in
// shared memory. A meeting is found by its key; only ranks that meet touch it, so others never
// wait.
//
// The table is guarded by a lock word in shared memory, held for a walk over the entries. A holder
// that dies ends the job, which whoever waits for the lock notices. `state`, `come` and what is
// written before a state is stored may be read without it. Thread: any. May block for the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "shm/job_layout.h"

namespace hvd::shm {

class Job;

inline constexpr uint32_t kMeetings = 1024;
inline constexpr size_t kLongestMeetingKey = 4096;

enum class MeetingState : uint32_t {
  kFree = 0,
  kGathering = 1,  // some have come
  kOpen = 2,       // all have come; ends when all have left
  kRefused = 3,    // cannot open; ends when those who wait have seen it
  kClearing = 4,   // all have left, the memory is being given back
};

// One bit per rank of the host.
struct RankBits {
  static constexpr int kWords = kMaxRanks / 64;
  std::atomic<uint64_t> words[kWords];

  void set(int rank) { words[rank / 64].fetch_or(bit(rank)); }
  void clear(int rank) { words[rank / 64].fetch_and(~bit(rank)); }
  bool has(int rank) const { return (words[rank / 64].load() & bit(rank)) != 0; }
  static uint64_t bit(int rank) { return uint64_t{1} << (rank % 64); }
};

struct alignas(kCacheLine) MeetingEntry {
  std::atomic<uint32_t> state;       // MeetingState
  std::atomic<uint32_t> generation;  // counts the uses of this entry: an old place is recognised
  uint32_t is_prepared;              // the channel's memory is there
  uint32_t key_bytes;
  uint64_t key_hash[2];
  char key_text[64];       // its beginning, for messages
  uint64_t offset, bytes;  // of the channel, in the pool of met sets
  RankBits ranks, come, left;
  int32_t refused_code;
  char refused_text[308];
};

struct MeetingBoard {
  alignas(kLineSpacing) std::atomic<uint32_t> lock;  // 0, or 1 + the rank that holds it
  uint32_t next;                                     // where to look for a free entry
  MeetingEntry entries[kMeetings];
};

// A meeting that this rank has come to.
struct MeetingPlace {
  uint32_t index = 0;
  uint32_t generation = 0;
  uint64_t offset = 0;  // of the channel, in the segment
};

class MeetingTable {
 public:
  explicit MeetingTable(const Job& job);

  // Counts this rank as come to the meeting of `key`; `ranks` (sorted) includes it. `bytes` is what
  // the set's channel needs. Fails if the key gathers other ranks that overlap with these (those
  // who wait for it fail as well), if this rank waits there already, or if there is no room.
  Result<MeetingPlace> come(std::string_view key, const std::vector<int32_t>& ranks,
                            uint64_t bytes);
  MeetingState state(const MeetingPlace& place) const;
  Status refusal(const MeetingPlace& place) const;  // of a refused meeting
  // Members that have not come yet.
  std::vector<int> missing(const MeetingPlace& place) const;
  // The member that reports for those who wait: the first that has come.
  int first_come(const MeetingPlace& place) const;

  // This rank no longer waits. False: the set has opened meanwhile, and this rank is in it.
  Result<bool> withdraw(const MeetingPlace& place);
  // This rank uses the set no more. The last one gives its memory back.
  Status leave(const MeetingPlace& place);

 private:
  class Guard;
  MeetingEntry& entry(uint32_t index) const { return board_.entries[index]; }
  MeetingEntry* find_gathering(std::string_view key, const std::vector<int32_t>& ranks) const;
  Result<uint32_t> take_free_entry(uint64_t bytes);
  Result<uint64_t> find_region(uint64_t bytes) const;
  bool is_of(const MeetingEntry& entry, const std::vector<int32_t>& ranks) const;
  void refuse(MeetingEntry& entry, const Status& status);
  bool open_if_complete(MeetingEntry& entry);
  void wake_members(const MeetingEntry& entry) const;
  Status prepare(MeetingEntry& entry, uint64_t offset, uint64_t bytes);

  const Job& job_;
  MeetingBoard& board_;
};

}  // namespace hvd::shm
