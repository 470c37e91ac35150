#include "mirror/mirror.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/explore.h"
#include "base/log.h"
#include "base/text.h"

namespace hvd::mirror {
namespace {

constexpr size_t kMaxHeldBytes = 64u << 20;
// Read marks that nobody's records carry are sent by every so many pumps.
constexpr uint64_t kPumpsPerFlush = kIsExplored ? 1 : 32;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

template <typename T>
bool read_body(std::span<const std::byte> body, T& value) {
  if (body.size() != sizeof value) return false;
  std::memcpy(&value, body.data(), sizeof value);
  return true;
}

Status malformed(int32_t rank, const char* what, size_t bytes) {
  return corrupted(concat("rank ", rank, " sent ", what, " of ", bytes, " bytes"));
}

// The last operation of this rank, copied while its threads go on. The place of an entry is used
// again only after all others, and then the copy does not count; that its plain fields may change
// meanwhile is meant, so the race detector looks elsewhere.
__attribute__((noinline, no_sanitize("thread"))) bool copy_last_flight(const shm::RankBlock& rank,
                                                                       AliveBody& body) {
  const uint32_t number = rank.flight_next.load(std::memory_order_acquire);
  const shm::FlightEntry& entry = rank.flight[number % shm::kFlightEntries];
  if (number == 0 || entry.number.load(std::memory_order_acquire) != number) return false;
  body.flight_number = number;
  body.flight_kind = entry.kind;
  body.flight_channel = entry.channel;
  body.name_length = std::min<uint32_t>(entry.name_length, sizeof entry.name);
  const auto* name = reinterpret_cast<const volatile char*>(entry.name);
  auto* copy = reinterpret_cast<char*>(body.name);
  for (uint32_t i = 0; i < body.name_length; ++i) copy[i] = name[i];
  std::atomic_thread_fence(std::memory_order_acquire);
  const uint32_t now = rank.flight_next.load(std::memory_order_relaxed);
  return now - number < shm::kFlightEntries - 1;
}

uint64_t nanoseconds_of(uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(ticks) / ticks_per_second() * 1e9);
}
// Of a span that a peer names: no more than what fits.
uint64_t ticks_of(uint64_t nanoseconds) {
  constexpr uint64_t kLongest = uint64_t{1} << 60;  // 36 years
  nanoseconds = std::min(nanoseconds, kLongest);
  return static_cast<uint64_t>(static_cast<double>(nanoseconds) * 1e-9 * ticks_per_second());
}

}  // namespace

Mirror::Mirror(shm::Job& job, const topology::HostMap& hosts, net::Mesh& mesh, MirrorHost& host)
    : job_(job), hosts_(hosts), mesh_(mesh), host_(host) {}

// ---- process sets

Mirror::Peer& Mirror::peer_of(int32_t rank) {
  for (Peer& peer : peers_) {
    if (peer.link.rank() == rank) return peer;
  }
  Peer& peer = peers_.emplace_back(rank);
  unattached_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(links_mutex_);
  links_[rank] = &peer.link;
  return peer;
}

MirroredChannel& Mirror::open(ChannelView view) {
  MutexLock lock(receive_mutex_);
  const bool is_global = channels_.empty();
  channels_.push_back(std::make_unique<MirroredChannel>(std::move(view), job_));
  MirroredChannel& channel = *channels_.back();
  for (const int32_t rank : channel.senders()) {
    Peer& peer = peer_of(rank);
    peer.sends_life_signs = peer.sends_life_signs || is_global;
  }
  if (is_global) receiver_on_.assign(hosts_.ranks_of.size(), -1);
  for (const int32_t rank : channel.receivers()) {
    Peer& peer = peer_of(rank);
    peer.link.add_channel(channel);
    channel.add_link(peer.link);
    if (!is_global) continue;
    peer.gets_life_signs = true;
    receiver_on_[static_cast<size_t>(hosts_.host_of[static_cast<size_t>(rank)])] = rank;
    introduce(peer.link);
  }
  open_[channel.wire_id()] = &channel;
  // What came before this rank opened the set.
  if (const auto held = held_.find(channel.wire_id()); held != held_.end()) {
    for (const Held& message : held->second) {
      held_bytes_ -= message.body.size();
      const Status status = channel.apply(message.from, message.header, message.body);
      if (!status.is_ok()) host_.peer_gone(message.from, status);
    }
    held_.erase(held);
    touched_.insert(&channel);
  }
  return channel;
}

void Mirror::close(MirroredChannel& channel) {
  // Its last news (that this rank has closed it) go out first.
  flush(channel);
  MutexLock lock(receive_mutex_);
  if (open_.erase(channel.wire_id()) == 0) return;
  closed_.insert(channel.wire_id());
  touched_.erase(&channel);
  for (Peer& peer : peers_) peer.link.remove_channel(channel);
}

void Mirror::introduce(PeerLink& link) {
  const shm::RankBlock& mine = job_.mine();
  HelloBody hello{};
  hello.pid = mine.pid.load();
  hello.stall_signal = mine.stall_signal.load();
  std::memcpy(hello.hostname, mine.hostname, sizeof hello.hostname);
  const Header header{sizeof hello, static_cast<uint16_t>(MessageKind::kHello), 0, 0, 0};
  (void)link.send(header, bytes_of(hello)).is_ok();  // nothing is attached yet: it only waits
}

std::vector<int32_t> Mirror::not_heard_of() const {
  std::vector<int32_t> ranks;
  for (int rank = 0; rank < job_.size(); ++rank) {
    const auto state = job_.block(rank).state.load(std::memory_order_acquire);
    if (state == static_cast<uint32_t>(shm::RankState::kStarting)) ranks.push_back(rank);
  }
  return ranks;
}

Status Mirror::meet(Deadline deadline, const Interrupt& interrupt) {
  Status met = meet_all(deadline, interrupt);
  if (met.is_ok() || !interrupt.miss || !interrupt.look().is_ok()) return met;
  for (const int32_t rank : not_heard_of()) interrupt.miss(rank);
  return met;
}

Status Mirror::meet_all(Deadline deadline, const Interrupt& interrupt) {
  for (;;) {
    const bool advanced = pump();
    const std::vector<int32_t> late = not_heard_of();
    if (late.empty()) return Status::ok();
    if (interrupt.look) HVD_TRY(interrupt.look());
    if (job_.has_failed()) return job_.failure();
    if (deadline.passed()) {
      const int32_t missing = late.front();
      const auto host = static_cast<size_t>(hosts_.host_of[static_cast<size_t>(missing)]);
      return Status(StatusCode::kTimedOut,
                    concat("init: rank ", missing, " (host ", hosts_.names[host],
                           ") was not heard of in time"));
    }
    if (!advanced) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// ---- sending

void Mirror::flush(const MirroredChannel& channel) {
  // A broken stream is noticed by whoever reads it.
  for (PeerLink* link : channel.links()) (void)link->flush().is_ok();
}

void Mirror::flush_all() {
  std::vector<PeerLink*> links;
  {
    MutexLock lock(links_mutex_);
    for (const auto& [rank, link] : links_) links.push_back(link);
  }
  for (PeerLink* link : links) (void)link->flush().is_ok();
}

bool Mirror::has_unsent() {
  MutexLock lock(links_mutex_);
  return std::any_of(links_.begin(), links_.end(),
                     [](const auto& item) { return item.second->has_unsent(); });
}

void Mirror::tell(int32_t rank, MessageKind kind, uint32_t index, std::span<const std::byte> body) {
  PeerLink* link = nullptr;
  {
    MutexLock lock(links_mutex_);
    const auto found = links_.find(rank);
    if (found == links_.end()) return;
    link = found->second;
  }
  const Header header{static_cast<uint32_t>(body.size()), static_cast<uint16_t>(kind), 0, 0, index};
  (void)link->send(header, body).is_ok();
}

void Mirror::tell_hosts(MessageKind kind, std::span<const std::byte> body) {
  for (const int32_t rank : receiver_on_) {
    if (rank >= 0) tell(rank, kind, 0, body);
  }
}

void Mirror::say_alive() {
  const shm::RankBlock& mine = job_.mine();
  AliveBody body{};
  body.heartbeat = mine.heartbeat.load(std::memory_order_relaxed);
  body.stall_signal = mine.stall_signal.load(std::memory_order_relaxed);
  AliveBody flight = body;
  if (copy_last_flight(mine, flight)) {
    body = flight;
    const shm::FlightEntry& entry = mine.flight[body.flight_number % shm::kFlightEntries];
    const uint64_t submitted = entry.submitted.load(std::memory_order_relaxed);
    const uint64_t done = entry.done.load(std::memory_order_relaxed);
    body.flight_state = entry.state.load(std::memory_order_relaxed);
    body.flight_age_ns = nanoseconds_of(ticks_now() - std::min(ticks_now(), submitted));
    body.flight_took_ns = done > submitted ? nanoseconds_of(done - submitted) : 0;
    body.flight_bytes = entry.bytes.load(std::memory_order_relaxed);
    body.flight_unnamed = entry.unnamed_number.load(std::memory_order_relaxed);
  }
  tell_hosts(MessageKind::kAlive, bytes_of(body));
}

void Mirror::say_leaving() {
  flush_all();
  tell_hosts(MessageKind::kLeaving, {});
}

void Mirror::say_left() {
  std::vector<int32_t> ranks;
  {
    MutexLock lock(links_mutex_);
    for (const auto& [rank, link] : links_) ranks.push_back(rank);
  }
  for (const int32_t rank : ranks) tell(rank, MessageKind::kLeft, 0, {});
}

void Mirror::say_failed(int32_t rank, const Status& why) {
  const FailureBody head{static_cast<int32_t>(why.code()), rank};
  std::vector<std::byte> body(sizeof head + why.message().size());
  std::memcpy(body.data(), &head, sizeof head);
  std::memcpy(body.data() + sizeof head, why.message().data(), why.message().size());
  tell_hosts(MessageKind::kFailure, body);
}

void Mirror::wake(int32_t rank) {
  const auto host = static_cast<size_t>(hosts_.host_of[static_cast<size_t>(rank)]);
  if (mesh_.wakes_sleepers() && !may_ring(rank, receiver_on_[host])) return;
  tell(receiver_on_[host], MessageKind::kWake, static_cast<uint32_t>(rank), {});
}

bool Mirror::may_ring(int32_t rank, int32_t receiver) {
  MutexLock lock(links_mutex_);
  const auto link = links_.find(receiver);
  return link != links_.end() &&
         ring_paces_[rank].may_ring(link->second->heard(), std::chrono::steady_clock::now());
}

void Mirror::report_stall(int32_t rank) {
  const auto host = static_cast<size_t>(hosts_.host_of[static_cast<size_t>(rank)]);
  tell(receiver_on_[host], MessageKind::kStallSignal, static_cast<uint32_t>(rank), {});
}

void Mirror::descriptors(std::vector<Descriptor>& out) {
  MutexLock lock(receive_mutex_);
  for (Peer& peer : peers_) {
    if (peer.link.is_attached() && !peer.is_gone)
      out.push_back({peer.link.descriptor(), peer.link.has_unsent()});
  }
}

// ---- receiving

bool Mirror::pump() {
  const uint64_t count = pump_count_.fetch_add(1, std::memory_order_relaxed);
  if (!receive_mutex_.try_lock()) return false;
  const bool any = pump_locked();
  receive_mutex_.unlock();
  if (count % kPumpsPerFlush == 0 || has_unsent()) flush_all();
  return any;
}

bool Mirror::pump_locked() {
  bool any = unattached_.load(std::memory_order_relaxed) != 0 && connect_peers();
  for (Peer& peer : peers_) {
    if (peer.link.is_attached() && !peer.is_gone) any = receive_from(peer) || any;
  }
  for (MirroredChannel* channel : touched_) channel->ring();
  touched_.clear();
  return any;
}

bool Mirror::connect_peers() {
  mesh_.poll();
  bool any = false;
  for (Peer& peer : peers_) {
    if (peer.link.is_attached() || peer.is_gone) continue;
    auto stream = mesh_.connect(peer.link.rank(), net::kControlPurpose);
    if (!stream) {
      unattached_.fetch_sub(1, std::memory_order_relaxed);
      end_of(peer, stream.status());
      continue;
    }
    if (*stream == nullptr) continue;
    peer.link.attach(std::move(*stream));
    unattached_.fetch_sub(1, std::memory_order_relaxed);
    (void)peer.link.flush().is_ok();
    any = true;
  }
  return any;
}

bool Mirror::receive_from(Peer& peer) {
  auto any =
      peer.link.receive([&](const Header& header, std::span<const std::byte> body)
                            HVD_NO_THREAD_SAFETY_ANALYSIS { return apply(peer, header, body); });
  if (any) return *any;
  end_of(peer, any.status());
  return true;
}

void Mirror::end_of(Peer& peer, const Status& why) {
  peer.is_gone = true;
  const auto state = static_cast<shm::RankState>(
      job_.block(peer.link.rank()).state.load(std::memory_order_acquire));
  const bool expected = peer.has_left || state == shm::RankState::kLeaving ||
                        state == shm::RankState::kLeft || job_.has_failed();
  if (!expected || why.code() == StatusCode::kCorrupted) host_.peer_gone(peer.link.rank(), why);
}

Status Mirror::apply(Peer& peer, const Header& header, std::span<const std::byte> body) {
  const int32_t rank = peer.link.rank();
  switch (static_cast<MessageKind>(header.kind)) {
    case MessageKind::kRecord:
    case MessageKind::kMarks:
    case MessageKind::kLog:
    case MessageKind::kClosed:
      return apply_to_channel(rank, header, body);
    case MessageKind::kHello:
      return apply_hello(peer, body);
    case MessageKind::kAlive:
      return apply_alive(peer, body);
    case MessageKind::kLeaving:
    case MessageKind::kLeft:
      apply_leaving(peer, static_cast<MessageKind>(header.kind));
      return Status::ok();
    case MessageKind::kFailure:
      return apply_failure(peer, body);
    case MessageKind::kWake:
      HVD_TRY(check_rank_here(peer, header.index));
      if (!job_.is_driven(static_cast<int>(header.index)))
        job_.wake_background(static_cast<int>(header.index));
      return Status::ok();
    case MessageKind::kStallSignal:
      HVD_TRY(check_rank_here(peer, header.index));
      host_.stall_reported(static_cast<int32_t>(header.index));
      return Status::ok();
  }
  return malformed(rank, "a message of unknown kind", body.size());
}

Status Mirror::apply_to_channel(int32_t from, const Header& header,
                                std::span<const std::byte> body) {
  if (const auto found = open_.find(header.channel); found != open_.end()) {
    touched_.insert(found->second);
    return found->second->apply(from, header, body);
  }
  if (closed_.count(header.channel) != 0) return Status::ok();
  // The sender has opened the set already; this rank is about to.
  held_bytes_ += body.size() + sizeof(Held);
  if (held_bytes_ > kMaxHeldBytes)
    return corrupted(concat("rank ", from, " sends too much for process sets that do not exist"));
  held_[header.channel].push_back({from, header, {body.begin(), body.end()}});
  return Status::ok();
}

Status Mirror::check_rank_here(const Peer& peer, uint32_t rank) const {
  if (rank < static_cast<uint32_t>(job_.size()) && job_.is_here(static_cast<int>(rank)))
    return Status::ok();
  return corrupted(concat("rank ", peer.link.rank(), " sent a message for rank ", rank,
                          ", which is not on this host"));
}

Status Mirror::apply_hello(Peer& peer, std::span<const std::byte> body) {
  HelloBody hello;
  if (!read_body(body, hello)) return malformed(peer.link.rank(), "an introduction", body.size());
  if (!peer.sends_life_signs) return Status::ok();
  shm::RankBlock& block = job_.block(peer.link.rank());
  block.global_rank = peer.link.rank();
  std::memcpy(block.hostname, hello.hostname, sizeof block.hostname);
  block.hostname[sizeof block.hostname - 1] = '\0';
  block.pid.store(hello.pid, std::memory_order_relaxed);
  block.stall_signal.store(hello.stall_signal, std::memory_order_relaxed);
  block.state.store(static_cast<uint32_t>(shm::RankState::kRunning), std::memory_order_release);
  return Status::ok();
}

Status Mirror::apply_alive(const Peer& peer, std::span<const std::byte> body) const {
  AliveBody alive;
  if (!read_body(body, alive) || alive.name_length > sizeof(shm::FlightEntry::name))
    return malformed(peer.link.rank(), "a life sign", body.size());
  if (!peer.sends_life_signs) return Status::ok();
  shm::RankBlock& block = job_.block(peer.link.rank());
  block.heartbeat.store(alive.heartbeat, std::memory_order_relaxed);
  block.stall_signal.store(alive.stall_signal, std::memory_order_relaxed);
  if (alive.flight_number == 0) return Status::ok();
  shm::FlightEntry& entry = block.flight[alive.flight_number % shm::kFlightEntries];
  const uint64_t now = ticks_now();
  entry.kind = alive.flight_kind;
  entry.state.store(alive.flight_state, std::memory_order_relaxed);
  entry.channel = alive.flight_channel;
  const uint64_t submitted = now - std::min(now, ticks_of(alive.flight_age_ns));
  entry.submitted.store(submitted, std::memory_order_relaxed);
  entry.done.store(alive.flight_took_ns == 0 ? 0 : submitted + ticks_of(alive.flight_took_ns),
                   std::memory_order_relaxed);
  entry.bytes.store(alive.flight_bytes, std::memory_order_relaxed);
  entry.unnamed_number.store(alive.flight_unnamed, std::memory_order_relaxed);
  entry.name_length = static_cast<uint8_t>(alive.name_length);
  std::memcpy(entry.name, alive.name, alive.name_length);
  entry.number.store(alive.flight_number, std::memory_order_release);
  block.flight_next.store(alive.flight_number, std::memory_order_release);
  return Status::ok();
}

void Mirror::apply_leaving(Peer& peer, MessageKind kind) {
  const int rank = peer.link.rank();
  shm::RankBlock& block = job_.block(rank);
  if (kind == MessageKind::kLeft) {
    peer.has_left = true;
    if (peer.sends_life_signs) {
      block.state.store(static_cast<uint32_t>(shm::RankState::kLeft), std::memory_order_seq_cst);
      job_.wake_everybody();
    }
    return;
  }
  if (!peer.sends_life_signs ||
      block.state.load() != static_cast<uint32_t>(shm::RankState::kRunning))
    return;
  block.state.store(static_cast<uint32_t>(shm::RankState::kLeaving), std::memory_order_seq_cst);
  uint32_t nobody = 0;
  job_.header().first_leaver.compare_exchange_strong(nobody, static_cast<uint32_t>(rank) + 1);
  job_.header().leaving.fetch_add(1, std::memory_order_seq_cst);
  job_.wake_everybody();
}

Status Mirror::apply_failure(const Peer& peer, std::span<const std::byte> body) {
  FailureBody head;
  if (body.size() < sizeof head) return malformed(peer.link.rank(), "a failure", body.size());
  std::memcpy(&head, body.data(), sizeof head);
  if (head.rank < 0 || head.rank >= job_.size()) {
    return corrupted(concat("rank ", peer.link.rank(), " says that rank ", head.rank, " of ",
                            job_.size(), " has failed"));
  }
  const auto text = body.subspan(sizeof head);
  const bool is_code = head.code > 0 && head.code <= static_cast<int>(kLastStatusCode);
  const auto code = is_code ? static_cast<StatusCode>(head.code) : StatusCode::kUnknownError;
  host_.job_failed(head.rank, Status(code, std::string(reinterpret_cast<const char*>(text.data()),
                                                       std::min<size_t>(text.size(), 4096))));
  return Status::ok();
}

}  // namespace hvd::mirror
