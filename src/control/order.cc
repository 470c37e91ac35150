#include "control/order.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "wire/codec.h"

namespace hvd::control {
namespace {

// A log entry: lap (16 bits) | flags (2) | rank (14) | record index (32). The lap tells a new entry
// from an old one.
constexpr uint64_t kResync = 1ull << 46;
constexpr uint64_t kJoin = 1ull << 47;
constexpr uint64_t kRefuse = kResync | kJoin;

uint64_t lap_of(uint32_t log_index) { return Board::log_lap(log_index); }
uint64_t make_entry(uint32_t log_index, uint64_t flags, int rank, uint32_t index) {
  return lap_of(log_index) << 48 | flags | static_cast<uint64_t>(rank & 0x3fff) << 32 | index;
}
int rank_of(uint64_t entry) { return static_cast<int>(entry >> 32 & 0x3fff); }

}  // namespace

uint64_t key_of(const wire::Request& request, uint64_t unnamed_number) {
  uint64_t key = 0;
  bool named = false;
  for (const wire::TensorSpec& tensor : request.tensors) {
    named = named || !tensor.name.empty();
    key = hash_bytes(tensor.name, key);
  }
  if (named) return key;
  return mix(0x756e6e616d6564ull + static_cast<uint64_t>(request.kind), unnamed_number + 1);
}

Order::Order(const Board& board, const shm::Job& job, Directory& directory, int size, int me,
             Deciders deciders)
    : board_(board),
      job_(job),
      directory_(directory),
      size_(size),
      me_(me),
      may_decide_(deciders == Deciders::kAll || me == 0),
      is_mirrored_(deciders == Deciders::kFirst),
      heads_(static_cast<size_t>(size)),
      marks_(static_cast<size_t>(size)),
      streams_(static_cast<size_t>(size)),
      lows_(static_cast<size_t>(size), 0),
      kept_(static_cast<size_t>(size)),
      stand_ins_(std::make_unique<Record[]>(static_cast<size_t>(size))),
      joined_(static_cast<size_t>(size), false) {
  for (int rank = 0; rank < size_; ++rank) set_head(heads_[static_cast<size_t>(rank)], rank, 0);
}

Look Order::fail(Status status) {
  failure_ = std::move(status);
  return Look::kFailed;
}

Look Order::match_in_lockstep() {
  for (int rank = 0; rank < size_; ++rank) lows_[static_cast<size_t>(rank)] = expected_low(rank);
  if (Status status = read_heads(); !status) return fail(std::move(status));
  if (!heads_match()) {
    enter_log_mode();
    return Look::kNothing;
  }
  for (int rank = 0; rank < size_; ++rank) {
    const auto r = static_cast<size_t>(rank);
    marks_[r] = std::move(kept_[r].front());
  }
  slot_ = kNoSlot;
  consumes_slowly_ = true;
  is_uniform_match_ = std::all_of(marks_.begin(), marks_.end(), [&](const Mark& mark) {
    return mark.slot == marks_[0].slot && mark.slot < kFirstSpecialSlot;
  });
  lockstep_count_.store(lockstep_count() + 1, std::memory_order_relaxed);
  return Look::kMatched;
}

// Reads the next record of every stream, unless it was read before or is a join.
Status Order::read_heads() {
  for (int rank = 0; rank < size_; ++rank) {
    if (is_kept(rank) || record_of(rank).slot == kJoinSlot) continue;
    const uint32_t index = index_of(rank);
    if (is_newer_than_table(rank, index)) return too_new(rank, index);
    HVD_TRY(read_once(rank, index));
  }
  return Status::ok();
}

// Do the next records of all streams mean the same?
bool Order::heads_match() {
  uint64_t first_key = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const auto r = static_cast<size_t>(rank);
    if (!is_kept(rank)) return false;  // a join
    streams_[r].unnamed = {};
    const uint64_t key = key_of_mark(rank, kept_[r].front());
    if (rank == 0) first_key = key;
    if (key != first_key) return false;
  }
  return true;
}

// The payloads were used: now the records may be overwritten.
void Order::consume_slowly() {
  if (!log_mode_) return consume_kept();
  for (int rank = 0; rank < size_; ++rank) publish_low(rank);
  if (resync_after_) leave_log_mode();
}

void Order::consume_kept() {
  for (int rank = 0; rank < size_; ++rank) {
    if (is_kept(rank)) {
      kept_[static_cast<size_t>(rank)].pop_front();
      --kept_count_;
    }
    set_head_or_kept(rank, index_of(rank) + 1);
    raise_low(rank, index_of(rank));
  }
}

void Order::set_head_or_kept(int rank, uint32_t index) {
  const auto r = static_cast<size_t>(rank);
  if (!is_kept(rank)) return set_head(heads_[r], rank, index);
  Record& stand_in = stand_ins_[r];
  stand_in.slot = kNoSlot;
  stand_in.seq.store(index + 1, std::memory_order_relaxed);
  heads_[r] = {&stand_in, index};
}

// Never back: the writer may have used what lies below.
void Order::raise_low(int rank, uint32_t index) {
  uint32_t& low = lows_[static_cast<size_t>(rank)];
  if (shm::reached(low, index)) return;
  low = index;
  schedule_point("consume");
  board_.low(me_, rank).store(index, std::memory_order_release);
}

void Order::enter_log_mode() {
  log_mode_ = true;
  table_.clear();
  ready_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    Stream& stream = streams_[static_cast<size_t>(rank)];
    stream = Stream{};
    stream.scanned = stream.consumed = stream.open_base = index_of(rank);
  }
}

void Order::leave_log_mode() {
  log_mode_ = false;
  resync_after_ = false;
  // Records beyond the level point were read, and are not read again.
  kept_count_ = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const auto r = static_cast<size_t>(rank);
    Stream& stream = streams_[r];
    for (auto pending = stream.open.rbegin(); pending != stream.open.rend(); ++pending) {
      if (*pending != nullptr) kept_[r].push_front(std::move((*pending)->marks[r]));
    }
    kept_count_ += kept_[r].size();
    stream.open.clear();
    set_head_or_kept(rank, stream.consumed);
    raise_low(rank, stream.consumed);
  }
  table_.clear();
  ready_.clear();
  refusals_.clear();
  missing_ = 0;
}

Look Order::next_in_log() {
  for (;;) {
    schedule_point("read the log");
    const uint64_t entry = board_.log(log_index_).load(std::memory_order_acquire);
    if (entry >> 48 == lap_of(log_index_)) {
      const Look look = follow(entry);
      if (look != Look::kNothing || !log_mode_ || waits_for_mirror_) return look;
      continue;
    }
    scan();
    if (!failure_.is_ok()) return Look::kFailed;
    if (joined_count_ == size_ && table_.empty()) return finish_joining();
    if (!may_decide_ || !append_decision()) return Look::kNothing;
  }
}

bool Order::log_has_room() const {
  for (int rank = 0; rank < size_; ++rank) {
    const uint32_t seen = board_.log_seen(rank).load(std::memory_order_acquire);
    if (log_index_ - seen >= kLogEntries - 1) return false;
  }
  return true;
}

bool Order::append_decision() {
  uint64_t wanted = 0;
  if (!ready_.empty()) {
    const Pending& pending = *ready_.front();
    const bool level = table_.size() == 1 && joined_count_ == 0;
    for (int rank = 0; rank < size_ && wanted == 0; ++rank) {
      const Mark& mark = pending.marks[static_cast<size_t>(rank)];
      if (mark.present) wanted = make_entry(log_index_, level ? kResync : 0, rank, mark.index);
    }
  } else if (!refusals_.empty()) {
    while (!refusals_.empty() && open_pending(refusals_[0].first, refusals_[0].second) == nullptr)
      refusals_.erase(refusals_.begin());
    if (!refusals_.empty())
      wanted = make_entry(log_index_, kRefuse, refusals_[0].first, refusals_[0].second);
  } else {
    for (int rank = 0; rank < size_ && wanted == 0; ++rank) {
      const Stream& stream = streams_[static_cast<size_t>(rank)];
      const bool news = stream.join_seen && !joined_[static_cast<size_t>(rank)];
      if (news) wanted = make_entry(log_index_, kJoin, rank, stream.scanned);
    }
  }
  if (wanted == 0 || !log_has_room()) return false;
  schedule_point("decide");
  auto& word = board_.log(log_index_);
  uint64_t old = word.load(std::memory_order_relaxed);
  // Losing is as good as winning: somebody's decision is there now.
  if (old >> 48 != lap_of(log_index_))
    word.compare_exchange_strong(old, wanted, std::memory_order_seq_cst);
  return true;
}

Look Order::follow(uint64_t entry) {
  const int rank = rank_of(entry);
  const auto index = static_cast<uint32_t>(entry);
  if (rank >= size_) {
    return fail(
        corrupted(concat("decision log: entry ", log_index_, " names rank ", rank, " of ", size_)));
  }
  Stream& stream = streams_[static_cast<size_t>(rank)];
  // The decider had seen the records of all ranks, so they are here: read them. Only those of other
  // hosts may still be on their way.
  scan();
  if (!failure_.is_ok()) return Look::kFailed;
  waits_for_mirror_ = is_mirrored_ && !has_come(entry);
  if (waits_for_mirror_) return Look::kNothing;
  if ((entry & kRefuse) == kRefuse) return follow_refusal(rank, index);
  if ((entry & kJoin) != 0) {
    if (!stream.join_seen || stream.scanned != index || joined_[static_cast<size_t>(rank)]) {
      return fail(corrupted(
          concat("decision log: entry ", log_index_, " joins rank ", rank, ", which did not")));
    }
    ++log_index_;
    board_.log_seen(me_).store(log_index_, std::memory_order_release);
    return follow_join(rank);
  }
  Pending* pending = open_pending(rank, index);
  if (pending == nullptr || !is_complete(*pending)) {
    return fail(corrupted(concat("decision log: entry ", log_index_, " names record ", index,
                                 " of rank ", rank, ", which is not complete")));
  }
  ++log_index_;
  board_.log_seen(me_).store(log_index_, std::memory_order_release);
  for (int r = 0; r < size_; ++r) {
    Mark& mark = pending->marks[static_cast<size_t>(r)];
    if (mark.present) {
      Stream& of = streams_[static_cast<size_t>(r)];
      of.open[mark.index - of.open_base] = nullptr;
      ++of.consumed;
    }
  }
  marks_.swap(pending->marks);
  std::erase(ready_, pending);
  table_.erase(pending->key);
  slot_ = kNoSlot;
  consumes_slowly_ = true;
  is_uniform_match_ = false;
  resync_after_ = (entry & kResync) != 0;
  log_count_.store(log_count() + 1, std::memory_order_relaxed);
  return Look::kMatched;
}

// Are all records that a decision speaks of on this host?
bool Order::has_come(uint64_t entry) const {
  const int rank = rank_of(entry);
  const auto index = static_cast<uint32_t>(entry);
  const Stream& stream = streams_[static_cast<size_t>(rank)];
  if ((entry & kRefuse) == kJoin) return stream.join_seen || !shm::reached(index, stream.scanned);
  if (shm::reached(index, stream.scanned)) return false;
  const Pending* pending = open_pending(rank, index);
  return pending == nullptr || (entry & kRefuse) == kRefuse || is_complete(*pending);
}

Order::Pending* Order::open_pending(int rank, uint32_t index) const {
  const Stream& stream = streams_[static_cast<size_t>(rank)];
  const uint32_t place = index - stream.open_base;
  return place < stream.open.size() ? stream.open[place] : nullptr;
}

Look Order::follow_refusal(int rank, uint32_t index) {
  Pending* pending = open_pending(rank, index);
  if (pending == nullptr) {
    return fail(corrupted(concat("decision log: entry ", log_index_, " refuses record ", index,
                                 " of rank ", rank, ", which is not open")));
  }
  ++log_index_;
  board_.log_seen(me_).store(log_index_, std::memory_order_release);
  const auto r = static_cast<size_t>(rank);
  Stream& stream = streams_[r];
  stream.open[index - stream.open_base] = nullptr;
  ++stream.consumed;
  for (Mark& mark : marks_) mark = Mark{};
  std::swap(marks_[r], pending->marks[r]);
  if (--pending->have == 0) {
    std::erase(ready_, pending);
    table_.erase(pending->key);
  }
  refused_rank_ = rank;
  slot_ = kNoSlot;
  consumes_slowly_ = true;
  is_uniform_match_ = false;
  resync_after_ = false;
  return Look::kRefused;
}

Look Order::follow_join(int rank) {
  joined_[static_cast<size_t>(rank)] = true;
  ++joined_count_;
  last_joined_ = rank;
  for (auto& [key, pending] : table_) {
    if (is_complete(*pending)) make_ready(*pending);
  }
  return Look::kNothing;
}

Look Order::finish_joining() {
  // Everybody stands behind its join record, with nothing left over: level by construction.
  for (int rank = 0; rank < size_; ++rank) {
    Stream& stream = streams_[static_cast<size_t>(rank)];
    stream.consumed = stream.scanned + 1;
  }
  std::fill(joined_.begin(), joined_.end(), false);
  joined_count_ = 0;
  leave_log_mode();
  return Look::kAllJoined;
}

bool Order::is_complete(const Pending& pending) const {
  if (pending.have == size_) return true;
  for (int rank = 0; rank < size_; ++rank) {
    const auto r = static_cast<size_t>(rank);
    if (!pending.marks[r].present && !joined_[r]) return false;
  }
  return true;
}

void Order::make_ready(Pending& pending) {
  if (pending.queued) return;
  pending.queued = true;
  ready_.push_back(&pending);
}

void Order::scan() {
  for (int rank = 0; rank < size_; ++rank) {
    while (failure_.is_ok() && scan_one(rank)) {
    }
    Stream& stream = streams_[static_cast<size_t>(rank)];
    const uint32_t low = lows_[static_cast<size_t>(rank)];
    if (shm::reached(stream.scanned, low + kRecords / 2 + 1)) spill(rank);
  }
}

bool Order::scan_one(int rank) {
  const auto r = static_cast<size_t>(rank);
  Stream& stream = streams_[r];
  if (stream.join_seen || (!is_kept(rank) && !read_ahead(rank))) return false;
  Mark& mark = kept_[r].front();
  const auto counts = stream.unnamed;
  const uint64_t key = key_of_mark(rank, mark);
  auto& entry = table_[key];
  if (entry == nullptr) {
    entry = std::make_unique<Pending>();
    entry->key = key;
    entry->marks.resize(static_cast<size_t>(size_));
  }
  Mark& place = entry->marks[r];
  if (place.present) {
    // The same name again, while the first is undecided here: go on when it is decided.
    stream.unnamed = counts;
    return false;
  }
  place = std::move(mark);
  kept_[r].pop_front();
  --kept_count_;
  ++entry->have;
  stream.open.push_back(entry.get());
  ++stream.scanned;
  if (is_complete(*entry)) make_ready(*entry);
  return true;
}

// Log mode: reads the next record of a stream, if it is there and may be read.
bool Order::read_ahead(int rank) {
  Stream& stream = streams_[static_cast<size_t>(rank)];
  schedule_point("read ahead");
  if (!board_.has(rank, stream.scanned)) return false;
  if (is_newer_than_table(rank, stream.scanned)) {
    // Its writer has followed a decision that this rank has not. Where the log is written on this
    // host the decision is here, as it came first.
    const bool has_log = !is_mirrored_ || may_decide_;
    if (has_log && !board_.has_log(log_index_)) failure_ = too_new(rank, stream.scanned);
    return false;
  }
  if (board_.record(rank, stream.scanned).slot == kJoinSlot) {
    stream.join_seen = true;
    return false;
  }
  failure_ = read_once(rank, stream.scanned);
  return failure_.is_ok();
}

bool Order::is_newer_than_table(int rank, uint32_t index) const {
  return !shm::reached(directory_.version(), board_.record(rank, index).view);
}

Status Order::too_new(int rank, uint32_t index) const {
  return corrupted(concat("record ", index, " of member ", rank, " knows version ",
                          board_.record(rank, index).view, " of the slot table, there are ",
                          directory_.version()));
}

// From the board into kept_.
Status Order::read_once(int rank, uint32_t index) {
  Mark mark;
  HVD_TRY(read_mark(rank, index, mark));
  HVD_TRY(identify(rank, mark));
  if (rank == me_) mark.local = directory_.local_operation(index);
  directory_.saw_view(rank, board_.record(rank, index).view);
  kept_[static_cast<size_t>(rank)].push_back(std::move(mark));
  ++kept_count_;
  return Status::ok();
}

void Order::spill(int rank) {
  Stream& stream = streams_[static_cast<size_t>(rank)];
  for (Pending* pending : stream.open) {
    if (pending == nullptr) continue;
    Mark& mark = pending->marks[static_cast<size_t>(rank)];
    if (mark.payload == nullptr || !mark.spilled.empty()) continue;
    mark.spilled.assign(mark.payload, mark.payload + mark.payload_bytes);
    mark.payload = mark.spilled.data();
  }
  raise_low(rank, stream.scanned);
}

void Order::publish_low(int rank) {
  Stream& stream = streams_[static_cast<size_t>(rank)];
  while (!stream.open.empty() && stream.open.front() == nullptr) {
    stream.open.pop_front();
    ++stream.open_base;
  }
  raise_low(rank, stream.open_base);
}

Status Order::read_mark(int rank, uint32_t index, Mark& mark) const {
  const Record& record = board_.record(rank, index);
  mark = Mark{};
  mark.present = true;
  mark.index = index;
  mark.slot = record.slot;
  mark.flags = record.flags;
  mark.payload_bytes = record.length;
  if (mark.slot == kJoinSlot || (mark.flags & kNoPayload) != 0) return Status::ok();
  std::span<const std::byte> payload;
  if ((mark.flags & kPayloadInline) != 0) {
    if (record.length <= kInlineBytes) payload = {record.payload, record.length};
  } else if ((mark.flags & kPayloadEager) != 0) {
    payload = board_.eager_range(rank, record.offset, record.length);
  } else if ((mark.flags & kPayloadArena) != 0) {
    uint32_t owner = 0;
    std::memcpy(&owner, record.payload, sizeof owner);
    const std::byte* data = job_.arena_address(static_cast<int>(std::min(owner, kNoSlot >> 1)),
                                               uint64_t{record.offset} * 256, record.length);
    if (data != nullptr) payload = {data, record.length};
  }
  if (payload.data() == nullptr) {
    return corrupted(concat("record ", index, " of member ", rank,
                            " points outside its memory: offset ", record.offset, ", length ",
                            record.length, ", flags ", record.flags));
  }
  mark.payload = payload.data();
  if (mark.slot != kNoSlot) return Status::ok();
  auto request = wire::decode(payload);
  if (!request) {
    return corrupted(
        concat("record ", index, " of member ", rank, ": ", request.status().message()));
  }
  mark.request = std::make_unique<wire::Request>(std::move(*request));
  mark.payload = nullptr;  // read, not needed any more
  return Status::ok();
}

// What is behind the slot that a record names.
Status Order::identify(int rank, Mark& mark) {
  if (mark.request != nullptr) return Status::ok();
  const auto identity = directory_.identify(mark.slot);
  if (!identity) {
    return corrupted(concat("record ", mark.index, " of member ", rank, " names slot ", mark.slot,
                            ", which does not exist"));
  }
  mark.slot_owner = identity->slot;
  mark.slot_key = identity->key;
  mark.slot_is_unnamed = identity->is_unnamed;
  mark.slot_kind = identity->kind;
  return Status::ok();
}

uint64_t Order::key_of_mark(int rank, const Mark& mark) {
  Stream& stream = streams_[static_cast<size_t>(rank)];
  if (mark.request != nullptr) {
    const auto kind = static_cast<size_t>(mark.request->kind);
    const bool unnamed = mark.request->tensors.empty() || mark.request->tensors[0].name.empty();
    return key_of(*mark.request, unnamed ? stream.unnamed[kind]++ : 0);
  }
  if (!mark.slot_is_unnamed) return mark.slot_key;
  wire::Request unnamed;
  unnamed.kind = mark.slot_kind;
  return key_of(unnamed, stream.unnamed[static_cast<size_t>(mark.slot_kind)]++);
}

Status Order::read_marks(std::span<Mark> marks) const {
  for (int rank = 0; rank < size_; ++rank) {
    HVD_TRY(read_mark(rank, index_of(rank), marks[static_cast<size_t>(rank)]));
  }
  return Status::ok();
}

std::vector<LocalOperation*> Order::pending_locals() const {
  std::vector<LocalOperation*> locals;
  for (const Pending* pending : streams_[static_cast<size_t>(me_)].open) {
    if (pending != nullptr) locals.push_back(pending->marks[static_cast<size_t>(me_)].local);
  }
  for (const Mark& mark : kept_[static_cast<size_t>(me_)]) locals.push_back(mark.local);
  return locals;
}

void Order::abandon(uint32_t tail) {
  table_.clear();
  ready_.clear();
  log_mode_ = false;
  for (Stream& stream : streams_) stream = Stream{};
  for (auto& kept : kept_) kept.clear();
  kept_count_ = 0;
  refusals_.clear();
  set_head(heads_[static_cast<size_t>(me_)], me_, tail);
}

shm::Want Order::want(uint32_t channel) const {
  if (log_mode_ || kept_count_ > 0) return {};
  const uint32_t index = index_of(me_);
  // The doorbell checks one index in all streams: right only while all are level.
  for (const Head& head : heads_) {
    if (head.index != index) return {};
  }
  return {shm::WantKind::kRecords, channel, index};
}

Status Order::check() const {
  for (int rank = 0; rank < size_; ++rank) {
    const uint32_t index = next_on_board(rank);
    if (board_.is_nonsense(rank, index)) {
      return corrupted(concat("record ", index, " of member ", rank, " has the sequence number ",
                              board_.record(rank, index).seq.load()));
    }
    const uint32_t low = board_.low(me_, rank).load(std::memory_order_relaxed);
    if (low != expected_low(rank)) {
      return corrupted(concat("member ", me_, " has read ", expected_low(rank),
                              " records of member ", rank, ", the shared segment says ", low));
    }
  }
  return check_log();
}

Status Order::check_log() const {
  const uint32_t seen = board_.log_seen(me_).load(std::memory_order_relaxed);
  if (seen != log_index_) {
    return corrupted(concat("member ", me_, " has read ", log_index_,
                            " decisions, the shared segment says ", seen));
  }
  // Decisions that this rank has followed and others may not have.
  uint32_t first = log_index_;
  for (int rank = 0; rank < size_; ++rank) {
    const uint32_t other = board_.log_seen(rank).load(std::memory_order_acquire);
    if (log_index_ - other < kLogEntries && !shm::reached(other, first)) first = other;
  }
  for (uint32_t index = first; index != log_index_; ++index) {
    if (board_.log(index).load(std::memory_order_acquire) >> 48 != lap_of(index))
      return corrupted(concat("decision ", index, " is gone from the shared segment"));
  }
  return Status::ok();
}

}  // namespace hvd::control
