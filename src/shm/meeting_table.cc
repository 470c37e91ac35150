#include "shm/meeting_table.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "base/hash.h"
#include "base/text.h"
#include "shm/job.h"

namespace hvd::shm {
namespace {

// A walk over the table takes microseconds. Whoever holds the lock this long was stopped.
constexpr auto kLockTime = std::chrono::seconds(10);

std::string shown(std::string_view key) {
  constexpr size_t kShown = 60;
  return key.size() <= kShown ? concat('\'', key, '\'')
                              : concat('\'', key.substr(0, kShown), "...'");
}

std::vector<int> ranks_in(const RankBits& bits, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (bits.has(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::string list_of(const RankBits& bits, int size) {
  return concat('[', join_text(ranks_in(bits, size), ", ", 16), ']');
}

bool equal(const RankBits& a, const RankBits& b) {
  for (int word = 0; word < RankBits::kWords; ++word) {
    if (a.words[word].load() != b.words[word].load()) return false;
  }
  return true;
}

bool is_empty(const RankBits& bits) {
  return std::all_of(std::begin(bits.words), std::end(bits.words),
                     [](const auto& word) { return word.load() == 0; });
}

void clear_all(RankBits& bits) {
  for (auto& word : bits.words) word.store(0);
}

}  // namespace

// Holds the lock while it lives; status() says whether it got it.
class MeetingTable::Guard {
 public:
  explicit Guard(const MeetingTable& table) : table_(table) {
    auto& word = table.board_.lock;
    const Deadline deadline = Deadline::after(kLockTime);
    for (uint32_t tries = 1;; ++tries) {
      uint32_t free = 0;
      if (word.compare_exchange_weak(free, static_cast<uint32_t>(table.job_.rank()) + 1)) return;
      if (tries < 100) {
        cpu_pause();
        continue;
      }
      sched_yield();
      if (table.job_.has_failed()) {
        status_ = table.job_.failure();
      } else if (tries % 64 == 0 && deadline.passed()) {
        status_ = Status(StatusCode::kPeerLost,
                         concat("meet: the table of meetings is held by rank ",
                                static_cast<int64_t>(free) - 1, " for ", kLockTime.count(), " s"));
      }
      if (!status_.is_ok()) return;
    }
  }
  ~Guard() {
    if (status_.is_ok()) table_.board_.lock.store(0);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  const Status& status() const { return status_; }

 private:
  const MeetingTable& table_;
  Status status_;
};

MeetingTable::MeetingTable(const Job& job) : job_(job), board_(job.meetings()) {}

bool MeetingTable::is_of(const MeetingEntry& entry, const std::vector<int32_t>& ranks) const {
  const std::vector<int> there = ranks_in(entry.ranks, job_.size());
  return std::equal(there.begin(), there.end(), ranks.begin(), ranks.end());
}

// The gathering that these ranks belong to, or that keeps them from gathering. Sets without a
// common rank may use the same key: nobody can confuse them.
MeetingEntry* MeetingTable::find_gathering(std::string_view key,
                                           const std::vector<int32_t>& ranks) const {
  for (MeetingEntry& e : board_.entries) {
    if (e.state.load() != static_cast<uint32_t>(MeetingState::kGathering) ||
        e.key_bytes != key.size() || e.key_hash[0] != hash_bytes(key, 1) ||
        e.key_hash[1] != hash_bytes(key, 2)) {
      continue;
    }
    if (std::any_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return e.ranks.has(rank); }))
      return &e;
  }
  return nullptr;
}

Result<uint64_t> MeetingTable::find_region(uint64_t bytes) const {
  std::vector<std::pair<uint64_t, uint64_t>> used;
  for (const MeetingEntry& e : board_.entries) {
    if (e.state.load() != static_cast<uint32_t>(MeetingState::kFree))
      used.emplace_back(e.offset, e.bytes);
  }
  std::sort(used.begin(), used.end());
  uint64_t at = 0;
  for (const auto& [offset, length] : used) {
    if (offset >= at && offset - at >= bytes) break;
    at = std::max(at, offset + length);
  }
  const uint64_t pool = job_.met_pool_bytes();
  if (bytes <= pool && at <= pool - bytes) return at;
  return Status(
      StatusCode::kOutOfMemory,
      concat("meet: no room for another process set beside the ", used.size(), " that exist"));
}

// Entries are used in turn, so that the id of a set that was left is not seen again soon.
Result<uint32_t> MeetingTable::take_free_entry(uint64_t bytes) {
  for (uint32_t n = 0; n < kMeetings; ++n) {
    const uint32_t index = (board_.next + n) % kMeetings;
    MeetingEntry& e = entry(index);
    if (e.state.load() != static_cast<uint32_t>(MeetingState::kFree)) continue;
    HVD_TRY_ASSIGN(e.offset, find_region(bytes));
    e.bytes = bytes;
    board_.next = (index + 1) % kMeetings;
    return index;
  }
  return Status(
      StatusCode::kOutOfMemory,
      concat("meet: ", kMeetings, " process sets exist or gather, there is no more room"));
}

void MeetingTable::refuse(MeetingEntry& e, const Status& status) {
  e.refused_code = static_cast<int32_t>(status.code());
  std::strncpy(e.refused_text, status.message().c_str(), sizeof e.refused_text - 1);
  e.state.store(static_cast<uint32_t>(MeetingState::kRefused));
}

bool MeetingTable::open_if_complete(MeetingEntry& e) {
  if (e.state.load() != static_cast<uint32_t>(MeetingState::kGathering) || e.is_prepared == 0 ||
      !equal(e.ranks, e.come)) {
    return false;
  }
  e.state.store(static_cast<uint32_t>(MeetingState::kOpen));
  return true;
}

void MeetingTable::wake_members(const MeetingEntry& e) const {
  for (const int rank : ranks_in(e.ranks, job_.size())) job_.wake(rank);
}

// Whoever makes an entry sees to its memory, without the lock: that may take long.
Status MeetingTable::prepare(MeetingEntry& e, uint64_t offset, uint64_t bytes) {
  const Status committed = job_.segment().commit_if_limited(offset, bytes);
  Guard guard(*this);
  HVD_TRY(guard.status());
  if (e.state.load() != static_cast<uint32_t>(MeetingState::kGathering)) return Status::ok();
  if (committed.is_ok()) {
    e.is_prepared = 1;
    if (open_if_complete(e)) wake_members(e);
  } else {
    refuse(e, Status(StatusCode::kOutOfMemory, committed.message()));
    wake_members(e);
  }
  return Status::ok();
}

Result<MeetingPlace> MeetingTable::come(std::string_view key, const std::vector<int32_t>& ranks,
                                        uint64_t bytes) {
  const int me = job_.rank();
  MeetingPlace place;
  bool is_first = false;
  {
    Guard guard(*this);
    HVD_TRY(guard.status());
    MeetingEntry* e = find_gathering(key, ranks);
    if (e != nullptr && !is_of(*e, ranks)) {
      const Status status = precondition_error(concat(
          "meet ", shown(key), ": rank ", me, " came with ranks [", join_text(ranks, ", ", 16),
          "], others wait with ", list_of(e->ranks, job_.size())));
      refuse(*e, status);
      wake_members(*e);
      return status;
    }
    if (e != nullptr && e->come.has(me)) {
      return invalid_argument(
          concat("meet ", shown(key), ": another thread of rank ", me, " waits there already"));
    }
    if (e == nullptr) {
      HVD_TRY_ASSIGN(const uint32_t index, take_free_entry(bytes));
      e = &entry(index);
      e->generation.store(e->generation.load() + 1);
      e->is_prepared = 0;
      e->key_bytes = static_cast<uint32_t>(key.size());
      e->key_hash[0] = hash_bytes(key, 1);
      e->key_hash[1] = hash_bytes(key, 2);
      std::memset(e->key_text, 0, sizeof e->key_text);
      std::memcpy(e->key_text, key.data(), std::min(key.size(), sizeof e->key_text));
      for (RankBits* bits : {&e->ranks, &e->come, &e->left}) clear_all(*bits);
      for (const int32_t rank : ranks) e->ranks.set(rank);
      std::memset(e->refused_text, 0, sizeof e->refused_text);
      e->state.store(static_cast<uint32_t>(MeetingState::kGathering));
      is_first = true;
    }
    place.index = static_cast<uint32_t>(e - board_.entries);
    place.generation = e->generation.load();
    if (e->bytes != bytes || e->offset % kPageBytes != 0 || bytes > job_.met_pool_bytes() ||
        e->offset > job_.met_pool_bytes() - bytes) {
      return corrupted(concat("meet ", shown(key), ": the table gives it ", e->bytes,
                              " bytes at offset ", e->offset));
    }
    place.offset = job_.met_pool_offset() + e->offset;
    e->come.set(me);
    if (open_if_complete(*e)) wake_members(*e);
  }
  if (is_first) HVD_TRY(prepare(entry(place.index), place.offset, bytes));
  return place;
}

MeetingState MeetingTable::state(const MeetingPlace& place) const {
  const MeetingEntry& e = entry(place.index);
  if (e.generation.load() != place.generation) return MeetingState::kFree;
  return static_cast<MeetingState>(e.state.load());
}

Status MeetingTable::refusal(const MeetingPlace& place) const {
  const MeetingEntry& e = entry(place.index);
  const bool is_code =
      e.refused_code > 0 && e.refused_code <= static_cast<int>(StatusCode::kCorrupted);
  return Status(is_code ? static_cast<StatusCode>(e.refused_code) : StatusCode::kUnknownError,
                std::string(e.refused_text, strnlen(e.refused_text, sizeof e.refused_text)));
}

std::vector<int> MeetingTable::missing(const MeetingPlace& place) const {
  const MeetingEntry& e = entry(place.index);
  std::vector<int> ranks = ranks_in(e.ranks, job_.size());
  std::erase_if(ranks, [&](int rank) { return e.come.has(rank); });
  return ranks;
}

int MeetingTable::first_come(const MeetingPlace& place) const {
  const std::vector<int> ranks = ranks_in(entry(place.index).come, job_.size());
  return ranks.empty() ? -1 : ranks.front();
}

Result<bool> MeetingTable::withdraw(const MeetingPlace& place) {
  bool is_last = false;
  MeetingEntry& e = entry(place.index);
  {
    Guard guard(*this);
    HVD_TRY(guard.status());
    if (state(place) == MeetingState::kOpen) return false;
    e.come.clear(job_.rank());
    is_last = is_empty(e.come);
    if (is_last) e.state.store(static_cast<uint32_t>(MeetingState::kClearing));
  }
  if (is_last) {
    HVD_TRY(job_.segment().discard(place.offset, e.bytes));
    e.state.store(static_cast<uint32_t>(MeetingState::kFree));
  }
  return true;
}

Status MeetingTable::leave(const MeetingPlace& place) {
  MeetingEntry& e = entry(place.index);
  bool is_last = false;
  {
    Guard guard(*this);
    HVD_TRY(guard.status());
    if (state(place) != MeetingState::kOpen || e.left.has(job_.rank())) {
      return corrupted(concat("leave: meeting ", place.index, " is not what this rank came to"));
    }
    e.left.set(job_.rank());
    is_last = equal(e.left, e.ranks);
    if (is_last) e.state.store(static_cast<uint32_t>(MeetingState::kClearing));
  }
  if (!is_last) {
    wake_members(e);  // whoever waits for this rank there waits in vain
    return Status::ok();
  }
  // The next set that lies here finds zeros, which every word of a channel starts from.
  HVD_TRY(job_.segment().discard(place.offset, e.bytes));
  e.state.store(static_cast<uint32_t>(MeetingState::kFree));
  return Status::ok();
}

}  // namespace hvd::shm
