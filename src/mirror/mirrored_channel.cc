#include "mirror/mirrored_channel.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace hvd::mirror {
namespace {

using control::Record;

// Read marks go along with every burst of a small job, and at least this often.
constexpr int kSmallJob = 32;
constexpr uint32_t kRecordsPerMarks = 16;
constexpr uint32_t kReadPerMarks = control::kRecords / 8;
constexpr uint32_t kLogPerMarks = control::kLogEntries / 8;

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), first, first + sizeof value);
}

template <typename T>
T read_at(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Header header_of(MessageKind kind, uint32_t channel, uint32_t index, size_t bytes) {
  return {static_cast<uint32_t>(bytes), static_cast<uint16_t>(kind), 0, channel, index};
}

}  // namespace

MirroredChannel::MirroredChannel(ChannelView view, shm::Job& job)
    : view_(std::move(view)), job_(job), bell_(job) {
  const Members& members = view_.members;
  const int32_t here = members.host_of[static_cast<size_t>(view_.me)];
  members_here_ = members.on_host(here);
  for (const int32_t host : members.hosts()) {
    if (host == here) continue;
    const int receiver = receiver_of(members, view_.me, host);
    Target target;
    target.rank = members.ranks[static_cast<size_t>(receiver)];
    target.lows.resize(members.ranks.size(), 0);
    targets_.push_back(std::move(target));
  }
  for (const int member : senders_to(members, view_.me)) {
    Source& source = sources_.emplace_back();
    source.rank = members.ranks[static_cast<size_t>(member)];
    source.member = member;
  }
}

MirroredChannel::~MirroredChannel() {
  for (Source& source : sources_) {
    for (const auto& [index, memory] : source.messages) job_.arena().forget(memory);
  }
}

std::vector<int32_t> MirroredChannel::receivers() const {
  std::vector<int32_t> ranks;
  for (const Target& target : targets_) ranks.push_back(target.rank);
  return ranks;
}

std::vector<int32_t> MirroredChannel::senders() const {
  std::vector<int32_t> ranks;
  for (const Source& source : sources_) ranks.push_back(source.rank);
  return ranks;
}

// ---- sending

bool MirroredChannel::collect_news(int32_t peer, size_t enough, std::vector<std::byte>& out) {
  const auto found = std::find_if(targets_.begin(), targets_.end(),
                                  [&](const Target& target) { return target.rank == peer; });
  if (found == targets_.end()) return true;
  Target& target = *found;
  while (view_.board.has(view_.me, target.records)) {
    if (out.size() >= enough) return false;
    add_record(target, out);
  }
  if (view_.me == 0) {
    while (view_.board.has_log(target.log)) add_log(target, out);
  }
  if (marks_are_due(target)) add_marks(target, out);
  if (!target.is_closed && view_.board.closed(view_.me).load(std::memory_order_acquire) != 0) {
    target.is_closed = true;
    append(out, header_of(MessageKind::kClosed, view_.wire_id, 0, 0));
  }
  return true;
}

bool MirroredChannel::is_going() const {
  return view_.board.closed(view_.me).load(std::memory_order_acquire) != 0 ||
         job_.mine().state.load(std::memory_order_acquire) !=
             static_cast<uint32_t>(shm::RankState::kRunning);
}

std::span<const std::byte> MirroredChannel::payload_of(const Record& record) const {
  if ((record.flags & control::kNoPayload) != 0) return {};
  if ((record.flags & control::kPayloadInline) != 0)
    return {record.payload, std::min<size_t>(record.length, control::kInlineBytes)};
  if ((record.flags & control::kPayloadEager) != 0)
    return view_.board.eager_range(view_.me, record.offset, record.length);
  const std::byte* data =
      job_.arena_address(job_.rank(), uint64_t{record.offset} * 256, record.length);
  return data == nullptr ? std::span<const std::byte>{}
                         : std::span<const std::byte>{data, record.length};
}

void MirroredChannel::add_record(Target& target, std::vector<std::byte>& out) const {
  const Record& record = view_.board.record(view_.me, target.records);
  const std::span<const std::byte> payload = payload_of(record);
  const RecordBody body{record.slot,  record.offset, record.length,
                        record.flags, record.view,   static_cast<uint32_t>(payload.size())};
  append(out, header_of(MessageKind::kRecord, view_.wire_id, target.records,
                        sizeof body + payload.size()));
  append(out, body);
  out.insert(out.end(), payload.begin(), payload.end());
  ++target.records;
}

void MirroredChannel::add_log(Target& target, std::vector<std::byte>& out) const {
  const uint64_t entry = view_.board.log(target.log).load(std::memory_order_acquire);
  append(out, header_of(MessageKind::kLog, view_.wire_id, target.log, sizeof entry));
  append(out, entry);
  ++target.log;
}

bool MirroredChannel::marks_are_due(const Target& target) const {
  const auto& board = view_.board;
  // Others must know how far this rank has come before they hear that it goes.
  if (is_going()) return true;
  const uint32_t own_low = board.low(view_.me, view_.me).load(std::memory_order_relaxed);
  const uint32_t unsent = target.records - target.records_at_marks;
  if (unsent > 0 && board.size() <= kSmallJob) return true;
  if (unsent >= kRecordsPerMarks) return true;
  if (own_low - target.lows[static_cast<size_t>(view_.me)] >= kReadPerMarks) return true;
  for (int stream = 0; stream < board.size(); ++stream) {
    const uint32_t low = board.low(view_.me, stream).load(std::memory_order_relaxed);
    if (low - target.lows[static_cast<size_t>(stream)] >= kReadPerMarks) return true;
  }
  return board.log_seen(view_.me).load(std::memory_order_relaxed) - target.log_seen >= kLogPerMarks;
}

void MirroredChannel::add_marks(Target& target, std::vector<std::byte>& out) const {
  const auto& board = view_.board;
  const auto size = static_cast<size_t>(board.size());
  append(out, header_of(MessageKind::kMarks, view_.wire_id, 0, (size + 1) * sizeof(uint32_t)));
  target.log_seen = board.log_seen(view_.me).load(std::memory_order_acquire);
  append(out, target.log_seen);
  for (size_t stream = 0; stream < size; ++stream) {
    target.lows[stream] =
        board.low(view_.me, static_cast<int>(stream)).load(std::memory_order_acquire);
    append(out, target.lows[stream]);
  }
  target.records_at_marks = target.records;
}

// ---- receiving

Status MirroredChannel::refuse(const Source& source, const char* what, uint64_t got) const {
  return corrupted(concat("process set ", view_.id, ": rank ", source.rank, " sent ", what, " ",
                          got, ", which it cannot have written"));
}

Status MirroredChannel::apply(int32_t from, const Header& header, std::span<const std::byte> body) {
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [&](const Source& source) { return source.rank == from; });
  if (found == sources_.end()) {
    return corrupted(concat("process set ", view_.id, ": rank ", from,
                            " sent a message that another rank of this host should get"));
  }
  switch (static_cast<MessageKind>(header.kind)) {
    case MessageKind::kRecord:
      return apply_record(*found, header.index, body);
    case MessageKind::kMarks:
      return apply_marks(*found, body);
    case MessageKind::kLog:
      return apply_log(*found, header.index, body);
    case MessageKind::kClosed:
      view_.board.closed(found->member).store(1, std::memory_order_seq_cst);
      return Status::ok();
    default:
      return refuse(*found, "a message of kind", header.kind);
  }
}

uint32_t MirroredChannel::least_low_here(int stream) const {
  uint32_t least = view_.board.low(members_here_[0], stream).load(std::memory_order_acquire);
  for (const int reader : members_here_) {
    const uint32_t low = view_.board.low(reader, stream).load(std::memory_order_acquire);
    if (!shm::reached(low, least)) least = low;
  }
  return least;
}

Status MirroredChannel::apply_record(Source& source, uint32_t index,
                                     std::span<const std::byte> body) {
  if (body.size() < sizeof(RecordBody)) return refuse(source, "a record of bytes", body.size());
  const auto fields = read_at<RecordBody>(body, 0);
  const std::span<const std::byte> payload = body.subspan(sizeof fields);
  if (index != source.next) return refuse(source, "record", index);
  if (index - least_low_here(source.member) >= control::kRecords)
    return refuse(source, "too many records, the next is", index);
  const bool has_payload = (fields.flags & control::kNoPayload) == 0;
  if (fields.payload_bytes != payload.size() ||
      payload.size() != (has_payload ? fields.length : 0)) {
    return refuse(source, "a record with a payload of bytes", payload.size());
  }
  Record& record = view_.board.record(source.member, index);
  record.slot = fields.slot;
  record.offset = fields.offset;
  record.length = fields.length;
  record.flags = fields.flags;
  record.view = fields.view;
  if (has_payload) {
    if ((fields.flags & control::kPayloadInline) != 0) {
      if (payload.size() > control::kInlineBytes)
        return refuse(source, "an inline payload of bytes", payload.size());
      std::memcpy(record.payload, payload.data(), payload.size());
    } else if ((fields.flags & control::kPayloadEager) != 0) {
      const auto place = view_.board.eager_range(source.member, fields.offset, fields.length);
      if (place.data() == nullptr) return refuse(source, "a payload at offset", fields.offset);
      std::memcpy(place.data(), payload.data(), payload.size());
    } else {
      HVD_TRY_ASSIGN(record.offset, keep_message(source, index, payload));
      const auto owner = static_cast<uint32_t>(job_.rank());
      std::memcpy(record.payload, &owner, sizeof owner);
    }
  }
  ++source.next;
  record.seq.store(index + 1, std::memory_order_release);
  return Status::ok();
}

Result<uint32_t> MirroredChannel::keep_message(Source& source, uint32_t index,
                                               std::span<const std::byte> payload) {
  const uint32_t read = least_low_here(source.member);
  while (!source.messages.empty() && shm::reached(read, source.messages.front().first + 1)) {
    (void)job_.arena().free(source.messages.front().second).is_ok();
    source.messages.pop_front();
  }
  HVD_TRY_ASSIGN(std::byte* const memory, job_.arena().alloc(payload.size()));
  source.messages.emplace_back(index, memory);
  std::memcpy(memory, payload.data(), payload.size());
  return static_cast<uint32_t>(job_.arena().offset_of(memory) / shm::Arena::kAlignment);
}

Status MirroredChannel::apply_marks(const Source& source, std::span<const std::byte> body) const {
  const auto size = static_cast<size_t>(view_.board.size());
  if (body.size() != (size + 1) * sizeof(uint32_t))
    return refuse(source, "read marks of bytes", body.size());
  const auto advance = [](std::atomic<uint32_t>& word, uint32_t value) {
    if (!shm::reached(value, word.load(std::memory_order_relaxed))) return false;
    word.store(value, std::memory_order_release);
    return true;
  };
  const auto log_seen = read_at<uint32_t>(body, 0);
  if (!advance(view_.board.log_seen(source.member), log_seen))
    return refuse(source, "a read mark of the log", log_seen);
  for (size_t stream = 0; stream < size; ++stream) {
    const auto low = read_at<uint32_t>(body, (stream + 1) * sizeof(uint32_t));
    if (!advance(view_.board.low(source.member, static_cast<int>(stream)), low))
      return refuse(source, "a read mark", low);
  }
  return Status::ok();
}

Status MirroredChannel::apply_log(const Source& source, uint32_t index,
                                  std::span<const std::byte> body) {
  if (source.member != 0) return refuse(source, "a decision, which member 0 makes:", index);
  if (body.size() != sizeof(uint64_t)) return refuse(source, "a decision of bytes", body.size());
  const auto entry = read_at<uint64_t>(body, 0);
  if (index != next_log_ || entry >> 48 != control::Board::log_lap(index))
    return refuse(source, "decision", index);
  for (const int reader : members_here_) {
    const uint32_t seen = view_.board.log_seen(reader).load(std::memory_order_acquire);
    if (index - seen >= control::kLogEntries)
      return refuse(source, "too many decisions, the next is", index);
  }
  ++next_log_;
  view_.board.log(index).store(entry, std::memory_order_seq_cst);
  return Status::ok();
}

void MirroredChannel::ring() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!bell_.anybody_sleeps()) return;
  bell_.wake_for_records(view_.id,
                         [&](uint32_t index) { return view_.board.present_everywhere(index); });
}

}  // namespace hvd::mirror
