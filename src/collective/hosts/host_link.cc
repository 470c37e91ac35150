#include "collective/hosts/host_link.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/text.h"

namespace hvd::collective::hosts {
namespace {

constexpr size_t kMaxParts = 64;            // of one system call; enough to fill any socket buffer
constexpr size_t kTrashBytes = 64 << 10;    // dropped bytes pass through here
constexpr std::align_val_t kAlignment{64};  // a cache line
constexpr uint32_t kGlobalChannel = 0;
// From here on what comes is asked for before it is taken. See may_receive().
constexpr uint64_t kAskFirstBytes = 16 << 10;

}  // namespace

void HostLink::Free::operator()(std::byte* data) const { ::operator delete(data, kAlignment); }

HostLink::HostLink(net::Mesh& mesh, HostLinkOptions options)
    : mesh_(mesh),
      options_(std::move(options)),
      plain_peers_(make_peers()),
      library_(options_.channel == kGlobalChannel &&
                       options_.layout.size() == options_.layout.host_count()
                   ? mesh.lane_reduce()
                   : nullptr) {}

std::vector<HostLink::Peer> HostLink::make_peers() const {
  std::vector<Peer> peers(options_.layout.host_of.size());
  for (size_t m = 0; m < peers.size(); ++m) peers[m].member = static_cast<int>(m);
  return peers;
}

void HostLink::begin_work(uint32_t kind, uint64_t bytes, Guard guard) {
  touched_.clear();
  const bool apart = guard == Guard::kBytes && mesh_.has_guarded_lane();
  if (apart && guarded_peers_.empty()) guarded_peers_ = make_peers();
  peers_ = apart ? &guarded_peers_ : &plain_peers_;
  now_ = {now_.sequence + 1, static_cast<uint16_t>(kind), 0, bytes};
  paced_ = {};
}

Pace HostLink::begin_paced_work(uint32_t kind, uint64_t bytes, Cut::Pace given) {
  begin_work(kind, bytes);
  if (given != Cut::Pace::kOwn) return given == Cut::Pace::kDeep ? Pace::kDeep : Pace::kLockstep;
  const int size_class = pace_class_of(bytes);
  if (options_.pace.has_value()) return *options_.pace;
  if (size_class < 0) return Pace::kLockstep;
  paced_ = {true, size_class, pace_in(paces_, size_class), std::chrono::steady_clock::now()};
  if (my_host() == 0) paces_ = now_.paces = chooser_.choices();
  return paced_.pace;
}

void HostLink::finish_paced_work() {
  if (!paced_.is_running) return;
  paced_.is_running = false;
  chooser_.report(paced_.size_class, paced_.pace, now_.bytes,
                  std::chrono::steady_clock::now() - paced_.began);
}

void HostLink::touch(Peer& peer) {
  if (peer.out.work == now_.sequence || peer.in.work == now_.sequence) return;
  touched_.push_back(peer.member);
}

uint64_t HostLink::append(Direction& direction, void* data, size_t bytes) {
  if (bytes == 0) return direction.queued;
  if (direction.is_idle()) {
    direction.parts.clear();
    direction.first = 0;
  }
  // What follows in memory needs no part of its own. (Dropped bytes are all alike.)
  iovec* last = direction.is_idle() ? nullptr : &direction.parts.back();
  if (last != nullptr && (last->iov_base == nullptr) == (data == nullptr) &&
      (data == nullptr || static_cast<std::byte*>(last->iov_base) + last->iov_len == data)) {
    last->iov_len += bytes;
  } else {
    direction.parts.push_back({data, bytes});
  }
  return direction.queued += bytes;
}

uint64_t HostLink::queue_send(int member, const void* data, size_t bytes) {
  Peer& to = peer(member);
  if (bytes == 0) return to.out.queued;
  touch(to);
  if (to.out.work != now_.sequence) {
    to.out.work = now_.sequence;
    SmallMessage& small = to.out.small;
    small.word = now_;
    if (bytes <= sizeof small.payload) {
      std::memcpy(small.payload, data, bytes);
      return append(to.out, &small, sizeof small.word + bytes);
    }
    append(to.out, &small.word, sizeof small.word);
  }
  return append(to.out, const_cast<void*>(data), bytes);
}

uint64_t HostLink::queue_receive(int member, void* data, size_t bytes) {
  Peer& from = peer(member);
  if (bytes == 0) return from.in.queued;
  touch(from);
  if (from.in.work != now_.sequence) {
    from.in.work = now_.sequence;
    SmallMessage& small = from.in.small;
    const bool is_small = data != nullptr && bytes <= sizeof small.payload;
    from.in.payload_to = static_cast<std::byte*>(data);
    from.in.payload_bytes = is_small ? bytes : 0;
    from.in.word_end = append(from.in, &small, sizeof small.word + from.in.payload_bytes);
    if (is_small) return from.in.word_end;
  }
  return append(from.in, data, bytes);
}

bool HostLink::has_sent_all() const {
  return !has_failed() && std::all_of(touched_.begin(), touched_.end(),
                                      [this](int member) { return peer(member).out.is_idle(); });
}

void HostLink::consume(Direction& direction, size_t bytes) {
  direction.done += bytes;
  while (bytes > 0) {
    iovec& part = direction.parts[direction.first];
    const size_t here = std::min(bytes, part.iov_len);
    if (part.iov_base != nullptr) part.iov_base = static_cast<std::byte*>(part.iov_base) + here;
    part.iov_len -= here;
    bytes -= here;
    if (part.iov_len == 0) ++direction.first;
  }
}

bool HostLink::open(Peer& peer) {
  if (peer.stream != nullptr) return true;
  mesh_.poll();
  auto stream = mesh_.connect(
      options_.global_ranks[static_cast<size_t>(peer.member)],
      net::data_purpose(options_.channel,
                        peers_ == &guarded_peers_ ? net::kGuardedLane : net::kPlainLane));
  if (!stream.is_ok()) {
    fail(stream.status());
    return false;
  }
  peer.stream = std::move(*stream);
  return peer.stream != nullptr;
}

bool HostLink::send_some(Peer& peer) {
  bool moved = false;
  while (!peer.out.is_idle()) {
    const size_t count = std::min(kMaxParts, peer.out.parts.size() - peer.out.first);
    const std::span<const iovec> parts(peer.out.parts.data() + peer.out.first, count);
    size_t offered = 0;
    for (const iovec& part : parts) offered += part.iov_len;
    const auto taken = peer.stream->send(parts);
    if (!taken.is_ok()) {
      fail(taken.status());
      return moved;
    }
    consume(peer.out, *taken);
    moved = moved || *taken > 0;
    if (*taken < offered) break;
  }
  return moved;
}

size_t HostLink::receive_parts(const Direction& in, iovec* parts) {
  size_t count = 0;
  for (size_t i = in.first; i < in.parts.size() && count < kMaxParts; ++i, ++count) {
    parts[count] = in.parts[i];
    if (parts[count].iov_base != nullptr) continue;
    if (trash_ == nullptr) trash_ = std::make_unique<std::byte[]>(kTrashBytes);
    parts[count].iov_base = trash_.get();
    if (parts[count].iov_len <= kTrashBytes) continue;
    parts[count++].iov_len = kTrashBytes;
    break;
  }
  return count;
}

// A receive that finds nothing takes the lock of the socket, and what is being delivered in that
// moment has to queue for it: a waiter that looks again and again slows down what it waits for.
// poll(2) takes no lock. A small message is one delivery, and there the receive alone is quicker.
bool HostLink::may_receive(Peer& peer) {
  if (!peer.is_drained || peer.in.queued - peer.in.done < kAskFirstBytes ||
      !peer.stream->is_socket() || peer.stream->has_buffered())
    return true;
  pollfd item{peer.stream->descriptor(), POLLIN, 0};
  return ::poll(&item, 1, 0) != 0;
}

bool HostLink::receive_some(Peer& peer) {
  bool moved = false;
  while (!peer.in.is_idle()) {
    iovec parts[kMaxParts];
    const size_t count = receive_parts(peer.in, parts);
    size_t wanted = 0;
    for (size_t i = 0; i < count; ++i) wanted += parts[i].iov_len;
    const auto came = peer.stream->receive({parts, count});
    if (!came.is_ok()) {
      fail(came.status());
      return moved;
    }
    consume(peer.in, *came);
    moved = moved || *came > 0;
    peer.is_drained = *came < wanted;
    if (peer.in.word_end != 0 && peer.in.done >= peer.in.word_end) check(peer);
    if (*came == 0 || has_failed()) break;
    if (*came < wanted && !peer.stream->has_buffered()) break;
  }
  return moved;
}

void HostLink::check(Peer& peer) {
  peer.in.word_end = 0;
  const CheckWord& came = peer.in.small.word;
  if (came.is_of_same_work(now_)) {
    if (peer.in.payload_bytes > 0)
      std::memcpy(peer.in.payload_to, peer.in.small.payload, peer.in.payload_bytes);
    if (paced_.is_running && layout().host(peer.member) == 0) paces_ = came.paces;
    return;
  }
  fail(corrupted(concat("data stream of process set ", options_.channel, ": ", peer.stream->peer(),
                        " runs work ", came.sequence, " (kind ", came.kind, ", ", came.bytes,
                        " bytes), member ", me(), " runs work ", now_.sequence, " (kind ",
                        now_.kind, ", ", now_.bytes, " bytes)")));
}

bool HostLink::pump() {
  bool moved = false;
  // All sends first: they are what others wait for, and bytes move in large portions.
  for (const int member : touched_) {
    Peer& to = peer(member);
    if (has_failed()) return moved;
    if (!to.out.is_idle() && open(to)) moved = send_some(to) || moved;
  }
  for (const int member : touched_) {
    Peer& from = peer(member);
    if (has_failed()) return moved;
    if (!from.in.is_idle() && open(from) && may_receive(from)) moved = receive_some(from) || moved;
  }
  return moved;
}

void HostLink::fail(Status status) {
  if (status_.is_ok()) status_ = std::move(status);
}

const std::vector<HostLink::Want>& HostLink::wants() {
  wants_.clear();
  // What a broken stream still holds is never read, and would wake sleepers again and again.
  if (has_failed()) return wants_;
  bool opens = false;
  for (const int member : touched_) {
    const Peer& other = peer(member);
    const int events = (other.in.is_idle() ? 0 : POLLIN) | (other.out.is_idle() ? 0 : POLLOUT);
    if (events == 0) continue;
    if (other.stream == nullptr) {
      opens = true;
    } else {
      wants_.push_back(
          {other.stream->descriptor(), other.stream->wake_events(static_cast<short>(events))});
    }
  }
  if (opens || library_works_) wants_.push_back({mesh_.descriptor(), POLLIN});
  return wants_;
}

std::byte* HostLink::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    scratch_bytes_ = align_up(bytes, 4096);
    scratch_.reset(static_cast<std::byte*>(::operator new(scratch_bytes_, kAlignment)));
  }
  return scratch_.get();
}

std::vector<int> HostLink::awaited() const {
  std::vector<int> members;
  for (const int member : touched_) {
    if (!peer(member).in.is_idle() || !peer(member).out.is_idle()) members.push_back(member);
  }
  for (int member = 0; library_works_ && member < layout().size(); ++member) {
    if (layout().host(member) != my_host()) members.push_back(member);
  }
  return members;
}

}  // namespace hvd::collective::hosts
