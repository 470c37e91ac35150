// order.h - finds the next operation of a channel, the same on every rank, without a coordinator.
//
// Stream: every rank appends records to its own stream; a record says "I have submitted this".
//
// Lockstep: an operation is agreed when the next record of ALL streams is there and they name the
// same thing: no decision, one exchange of cache lines. Nothing ready can be missed: what is ready
// everywhere implies a next record everywhere.
//
// Log: the next records differ -> every rank sees the same mismatch and enters log mode at the same
// place. Whoever sees something complete in all streams appends it to the decision log by
// compare-and-swap; the log is the only truth, and every rank executes it in order. When nothing is
// left over after a decision, the decider marks it kResync and all go back to lockstep behind it,
// at positions that follow from what was consumed.
//
// Hosts: a channel on several hosts sees copies of remote streams and of the log (mirror). Then
// member 0 alone decides, and a decision is followed when the records it speaks of have come, too.
//
// Reading: in log mode a rank looks at records that are not agreed yet. A record may name a slot,
// and the slot table is a state machine that each rank steps when it follows an agreed operation,
// so a writer may be ahead of a reader or behind it. Its `view`, the version of the table when it
// was written, says by how much. Three rules make a slot number mean the same everywhere:
//   1. A record is read by a rank whose table is at least as new as the record's view. Until then
//      its stream is not read on. Views of a stream never fall, so nothing older hides behind it.
//   2. A record is read once. What was read is kept until it is agreed, back in lockstep too, and
//      holds what its slot stands for.
//   3. An evicted slot is forgotten when a record was read in every stream whose view is as new as
//      the eviction.
// Why a slot is always there when it is looked up: its writer named a slot that was live in version
// `view`. By (1) the reader has made that version, so the slot was inserted here. If it was evicted
// since, the eviction is newer than `view`; whoever had forgotten it had read, in this very stream,
// a record with a newer view, which by order stands behind this one: then this one was read
// before, and by (2) it is not read again.
// Why nobody waits for ever by (1): a decision speaks of records that its decider had read, at the
// version that everybody has who comes to that entry of the log. And a rank whose table is too old
// for a record has entries before it that it has not followed; if there are none, the view is
// corrupt. In lockstep a writer is never ahead: the operation that would bring it there needs the
// record in question.
//
// Join: a joined rank submits nothing. Its join record is turned into a log entry, so that all
// ranks count it as joined from the same decision on. When all have joined and nothing is left,
// joining is over and all start level again.
//
// Refusal: records that can never be completed (ranks group the same names differently) are ended
// one by one, by entries that name them. Whoever sees it appends them; see refuse().
//
// Matching: named things match by a hash of their name (of all names, for a group), so that a
// mismatch of kind or shape is an error and not a stall. Unnamed ones match by kind and by their
// number in the stream since log mode began.
//
// Memory: records are consumed when agreed. A record that stays unmatched while half the ring has
// passed is copied out, so that a slow tensor never blocks the stream of the others.
//
// Orders: seq: release / acquire. Log: CAS seq_cst, read acquire; what the decider had seen is
// visible to whoever reads its entry. low and log_seen: release / acquire.
//
// Never blocks. Contents of records are distrusted: nonsense ends in a Status.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/cpu.h"
#include "base/engine_role.h"
#include "base/explore.h"
#include "base/status.h"
#include "control/board.h"
#include "negotiate/slot_table.h"
#include "shm/job.h"
#include "wire/request.h"

namespace hvd::control {

// What a slot number stands for.
struct SlotIdentity {
  uint64_t key;
  bool is_unnamed;
  wire::Kind kind;
  negotiate::SlotPtr slot;  // stays while a record that names it waits
};
// An operation of this rank; the engine knows what it really is.
class LocalOperation {
 protected:
  ~LocalOperation() = default;
};

// The slot table and the operations of this rank, which the engine owns.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual std::optional<SlotIdentity> identify(uint32_t slot) HVD_REQUIRES(engine_role) = 0;
  // The local operation behind record `index` of this rank's own stream.
  virtual LocalOperation* local_operation(uint32_t index) HVD_REQUIRES(engine_role) = 0;
  // The version of the slot table here.
  virtual uint32_t version() const HVD_REQUIRES(engine_role) = 0;
  // A record of `rank` with this view was read, and all before it.
  virtual void saw_view(int rank, uint32_t view) HVD_REQUIRES(engine_role) = 0;
};

uint64_t key_of(const wire::Request& request, uint64_t unnamed_number);

// One rank's part of an agreed operation.
struct Mark {
  bool present = false;  // false: the rank has joined
  uint32_t index = 0;    // in its stream
  uint32_t slot = kNoSlot;
  uint32_t flags = 0;
  const std::byte* payload = nullptr;
  uint32_t payload_bytes = 0;
  std::unique_ptr<wire::Request> request;  // of a record that names no slot
  std::vector<std::byte> spilled;          // owns the payload of a record that was copied out
  negotiate::SlotPtr slot_owner;           // what the directory said is behind the slot:
  uint64_t slot_key = 0;
  bool slot_is_unnamed = false;
  wire::Kind slot_kind = wire::Kind::kAllreduce;
  LocalOperation* local = nullptr;  // own rank: the operation
};

enum class Look {
  kNothing,    // nothing is agreed yet
  kUniform,    // lockstep, all records name slot(): read them with record_of()
  kMatched,    // marks() has the records of all ranks
  kRefused,    // one record ends without its partners: refused_rank(), its mark in marks()
  kAllJoined,  // joining is over; last_joined()
  kFailed,     // failure()
};

// Who appends decisions: anybody who shares the log, or member 0 alone, whose entries are copied to
// other hosts.
enum class Deciders { kAll, kFirst };

class Order {
 public:
  Order(const Board& board, const shm::Job& job, Directory& directory, int size, int me,
        Deciders deciders);

  // Looks for the next operation. After kUniform or kMatched the caller takes what it needs, then
  // calls consume().
  Look next() HVD_REQUIRES(engine_role) {
    if (HVD_LIKELY(!log_mode_)) {
      const Look look = next_in_lockstep();
      if (HVD_LIKELY(!log_mode_)) return look;
    }
    return next_in_log();
  }
  void consume() HVD_REQUIRES(engine_role) {
    if (HVD_UNLIKELY(consumes_slowly_)) return consume_slowly();
    for (int rank = 0; rank < size_; ++rank) {
      Head& head = heads_[static_cast<size_t>(rank)];
      set_head(head, rank, head.index + 1);
      schedule_point("consume");
      board_.low(me_, rank).store(head.index, std::memory_order_release);
    }
  }

  // Lockstep, and the record that was missing is still not there.
  bool waits_for_record() const HVD_REQUIRES(engine_role) {
    return !log_mode_ && !heads_[static_cast<size_t>(missing_)].is_there();
  }
  uint32_t slot() const HVD_REQUIRES(engine_role) { return slot_; }
  Record& record_of(int rank) const HVD_REQUIRES(engine_role) {
    return *heads_[static_cast<size_t>(rank)].record;
  }
  uint32_t index_of(int rank) const HVD_REQUIRES(engine_role) {
    return heads_[static_cast<size_t>(rank)].index;
  }
  std::span<Mark> marks() HVD_REQUIRES(engine_role) { return marks_; }
  int last_joined() const HVD_REQUIRES(engine_role) { return last_joined_; }
  int refused_rank() const HVD_REQUIRES(engine_role) { return refused_rank_; }

  bool is_in_log_mode() const HVD_REQUIRES(engine_role) { return log_mode_; }
  // Log mode, everything complete is decided, and something is left over.
  bool is_stuck() const HVD_REQUIRES(engine_role) {
    return log_mode_ && ready_.empty() && refusals_.empty() && !table_.empty();
  }
  // Log mode: fn(rank, mark, key) for each record that was read and is undecided.
  template <typename Fn>
  void for_open(const Fn& fn) const HVD_REQUIRES(engine_role);
  // Records (rank, index) that can never be agreed: the log will say so, unless they are completed
  // before.
  void refuse(std::vector<std::pair<int, uint32_t>> records) HVD_REQUIRES(engine_role) {
    refusals_ = std::move(records);
  }
  const Status& failure() const HVD_REQUIRES(engine_role) { return failure_; }
  bool has_joined(int rank) const HVD_REQUIRES(engine_role) {
    return joined_[static_cast<size_t>(rank)];
  }
  bool anybody_joined() const HVD_REQUIRES(engine_role) { return joined_count_ > 0; }
  // kMatched, but as good as kUniform: the records of other ranks may show it as such to them.
  bool is_uniform_match() const HVD_REQUIRES(engine_role) { return is_uniform_match_; }

  // Lockstep: the records of all ranks in full.
  Status read_marks(std::span<Mark> marks) const HVD_REQUIRES(engine_role);
  // The first record of the own stream that was not looked at.
  uint32_t next_own() const HVD_REQUIRES(engine_role) {
    return log_mode_ ? streams_[static_cast<size_t>(me_)].scanned : index_of(me_);
  }
  // Own operations that were looked at and not agreed.
  std::vector<LocalOperation*> pending_locals() const HVD_REQUIRES(engine_role);
  // Forgets everything; the own stream counts as read up to `tail`. Only after a failure.
  void abandon(uint32_t tail) HVD_REQUIRES(engine_role);
  // fn(mark) for each record of `rank` that is not agreed yet, as far as it can be read. Only those
  // that were read before hold what is behind their slot.
  template <typename Fn>
  void for_unagreed(int rank, const Fn& fn) const HVD_REQUIRES(engine_role);

  // What to sleep for: the next record of all ranks, or anything in log mode.
  shm::Want want(uint32_t channel) const HVD_REQUIRES(engine_role);
  // A rank whose record is missing (lockstep), -1 if unknown.
  int missing_rank() const HVD_REQUIRES(engine_role) { return log_mode_ ? -1 : missing_; }
  // Are the words read next plausible, and those that this rank alone writes what it wrote? For
  // slow paths.
  Status check() const HVD_REQUIRES(engine_role);

  uint64_t lockstep_count() const { return lockstep_count_.load(std::memory_order_relaxed); }
  uint64_t log_count() const { return log_count_.load(std::memory_order_relaxed); }

 private:
  friend struct explore::Probe;
  struct Pending {
    uint64_t key = 0;
    std::vector<Mark> marks;
    int have = 0;
    bool queued = false;
  };
  struct Stream {
    uint32_t scanned = 0;       // next record to look at
    uint32_t consumed = 0;      // records decided since log mode began, plus where it began
    uint32_t open_base = 0;     // index of open.front()
    std::deque<Pending*> open;  // per record from open_base on; null: decided or copied out
    bool join_seen = false;     // the record at `scanned` is a join that is not over
    std::array<uint32_t, wire::kKindCount> unnamed{};
  };

  // Lockstep: the next record of a stream, and where it lies.
  struct Head {
    Record* record;
    uint32_t index;
    bool is_there() const { return record->seq.load(std::memory_order_acquire) == index + 1; }
  };
  void set_head(Head& head, int rank, uint32_t index) const HVD_REQUIRES(engine_role) {
    head = {&board_.record(rank, index), index};
  }
  // The same where the record may be kept.
  void set_head_or_kept(int rank, uint32_t index) HVD_REQUIRES(engine_role);
  bool is_kept(int rank) const HVD_REQUIRES(engine_role) {
    return !kept_[static_cast<size_t>(rank)].empty();
  }
  Look next_in_lockstep() HVD_REQUIRES(engine_role);
  Look match_in_lockstep() HVD_REQUIRES(engine_role);
  Status read_heads() HVD_REQUIRES(engine_role);
  bool heads_match() HVD_REQUIRES(engine_role);
  void consume_slowly() HVD_REQUIRES(engine_role);
  void consume_kept() HVD_REQUIRES(engine_role);
  Look next_in_log() HVD_REQUIRES(engine_role);
  void enter_log_mode() HVD_REQUIRES(engine_role);
  bool append_decision() HVD_REQUIRES(engine_role);  // false: nothing to decide
  Look follow(uint64_t entry) HVD_REQUIRES(engine_role);
  bool has_come(uint64_t entry) const HVD_REQUIRES(engine_role);
  Look follow_join(int rank) HVD_REQUIRES(engine_role);
  Look follow_refusal(int rank, uint32_t index) HVD_REQUIRES(engine_role);
  Pending* open_pending(int rank, uint32_t index) const HVD_REQUIRES(engine_role);
  Look finish_joining() HVD_REQUIRES(engine_role);
  void leave_log_mode() HVD_REQUIRES(engine_role);
  void scan() HVD_REQUIRES(engine_role);
  bool scan_one(int rank) HVD_REQUIRES(engine_role);
  bool read_ahead(int rank) HVD_REQUIRES(engine_role);
  Status read_once(int rank, uint32_t index) HVD_REQUIRES(engine_role);
  bool is_newer_than_table(int rank, uint32_t index) const HVD_REQUIRES(engine_role);
  Status too_new(int rank, uint32_t index) const HVD_REQUIRES(engine_role);
  void make_ready(Pending& pending) HVD_REQUIRES(engine_role);
  bool is_complete(const Pending& pending) const HVD_REQUIRES(engine_role);
  void spill(int rank) HVD_REQUIRES(engine_role);
  void publish_low(int rank) HVD_REQUIRES(engine_role);
  Status read_mark(int rank, uint32_t index, Mark& mark) const HVD_REQUIRES(engine_role);
  Status identify(int rank, Mark& mark) HVD_REQUIRES(engine_role);
  uint64_t key_of_mark(int rank, const Mark& mark) HVD_REQUIRES(engine_role);
  Look fail(Status status) HVD_REQUIRES(engine_role);
  bool log_has_room() const HVD_REQUIRES(engine_role);
  // The first record of a stream that must be read from the board.
  uint32_t next_on_board(int rank) const HVD_REQUIRES(engine_role) {
    const auto r = static_cast<size_t>(rank);
    const uint32_t next = log_mode_ ? streams_[r].scanned : index_of(rank);
    return next + static_cast<uint32_t>(kept_[r].size());
  }
  void raise_low(int rank, uint32_t index) HVD_REQUIRES(engine_role);
  uint32_t expected_low(int rank) const HVD_REQUIRES(engine_role) {
    return log_mode_ || is_kept(rank) ? lows_[static_cast<size_t>(rank)] : index_of(rank);
  }
  Status check_log() const HVD_REQUIRES(engine_role);

  const Board& board_;
  const shm::Job& job_;
  Directory& directory_;
  const int size_;
  const int me_;
  const bool may_decide_;
  const bool is_mirrored_;
  bool waits_for_mirror_ = false;

  std::vector<Head> heads_;
  int missing_ = 0;
  uint32_t slot_ = kNoSlot;
  bool log_mode_ = false;
  bool consumes_slowly_ = false;
  bool resync_after_ = false;
  std::vector<Mark> marks_;
  Status failure_;

  std::vector<Stream> streams_;
  std::vector<uint32_t> lows_;  // what low(me, stream) holds; in plain lockstep the head says it
  // Read and neither agreed nor placed in table_, per stream: in lockstep the records from its head
  // on, in log mode those from `scanned` on. Never a join.
  std::vector<std::deque<Mark>> kept_;
  size_t kept_count_ = 0;                // of all streams
  std::unique_ptr<Record[]> stand_ins_;  // per stream, the head while it is kept: never uniform
  bool is_uniform_match_ = false;
  std::unordered_map<uint64_t, std::unique_ptr<Pending>> table_;
  std::deque<Pending*> ready_;
  uint32_t log_index_ = 0;
  std::vector<bool> joined_;
  int joined_count_ = 0;
  int last_joined_ = -1;
  std::vector<std::pair<int, uint32_t>> refusals_;  // to be appended by this rank
  int refused_rank_ = -1;
  // Statistics: written with the role, read by anybody.
  std::atomic<uint64_t> lockstep_count_{0}, log_count_{0};
};

inline Look Order::next_in_lockstep() {
  // The rank that was late last time is looked at first: while waiting only one line is read.
  if (!heads_[static_cast<size_t>(missing_)].is_there()) return Look::kNothing;
  const Head& own = heads_[static_cast<size_t>(me_)];
  if (!own.is_there()) return Look::kNothing;
  const uint32_t slot = own.record->slot;
  bool uniform = slot < kFirstSpecialSlot;
  for (int rank = 0; rank < size_; ++rank) {
    const Head& head = heads_[static_cast<size_t>(rank)];
    schedule_point("look at the next record");
    if (!head.is_there()) {
      missing_ = rank;
      return Look::kNothing;
    }
    uniform = uniform && head.record->slot == slot;
  }
  if (HVD_UNLIKELY(!uniform)) return match_in_lockstep();
  slot_ = slot;
  consumes_slowly_ = false;
  lockstep_count_.store(lockstep_count() + 1, std::memory_order_relaxed);
  return Look::kUniform;
}

template <typename Fn>
void Order::for_open(const Fn& fn) const {
  for (int rank = 0; rank < size_; ++rank) {
    for (const Pending* pending : streams_[static_cast<size_t>(rank)].open) {
      if (pending != nullptr) fn(rank, pending->marks[static_cast<size_t>(rank)], pending->key);
    }
  }
}

template <typename Fn>
void Order::for_unagreed(int rank, const Fn& fn) const {
  const Stream& stream = streams_[static_cast<size_t>(rank)];
  if (log_mode_) {
    for (const Pending* pending : stream.open) {
      if (pending == nullptr) continue;
      fn(pending->marks[static_cast<size_t>(rank)]);
    }
  }
  for (const Mark& mark : kept_[static_cast<size_t>(rank)]) fn(mark);
  uint32_t index = next_on_board(rank);
  for (uint32_t n = 0; n < kRecords && board_.has(rank, index); ++n, ++index) {
    Mark mark;
    if (!read_mark(rank, index, mark).is_ok()) return;
    fn(mark);
  }
}

}  // namespace hvd::control
