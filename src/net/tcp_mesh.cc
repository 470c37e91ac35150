#include "net/tcp_mesh.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "net/sealed_stream.h"
#include "net/tls_stream.h"

namespace hvd::net {
namespace {

// Streams that peers have opened and this rank has not asked for yet. Peers of the job are trusted
// not to flood us; the bound catches a mistake before the process runs out of descriptors.
constexpr size_t kMostUnclaimed = 4096;

Status watch(const UniqueFd& epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status::ok();
  return errno_status("mesh: epoll", errno);
}

class TcpMesh final : public Mesh {
 public:
  TcpMesh(std::vector<MeshPeer> peers, const Key& key, const TcpMeshOptions& options)
      : peers_(std::move(peers)), key_(key), options_(options) {}

  Status open(Listener listener) HVD_EXCLUDES(mutex_);

  Result<std::unique_ptr<Stream>> connect(int32_t peer, uint64_t purpose) override
      HVD_EXCLUDES(mutex_);
  void poll() override HVD_EXCLUDES(mutex_);
  int descriptor() const override { return epoll_.get(); }
  bool has_guarded_lane() const override { return options_.protection == Protection::kGuarded; }

 private:
  enum class End { kDialler, kAcceptor };
  // What is known about the streams of one peer for one purpose.
  struct Entry {
    std::unique_ptr<Dialler> dialler{};
    std::deque<std::unique_ptr<Stream>> ready{};
    Status failure{};
    Deadline deadline = Deadline::never();  // set when this rank first asked
  };
  using Entries = std::map<std::pair<int32_t, uint64_t>, Entry>;

  Status start_dialling(Entry& entry, int32_t peer, uint64_t purpose) HVD_REQUIRES(mutex_);
  void advance(Entry& entry, int32_t peer, uint64_t purpose) HVD_REQUIRES(mutex_);
  void accept(Accepted accepted) HVD_REQUIRES(mutex_);
  Result<std::unique_ptr<Stream>> wrap(UniqueFd socket, const Address& address, const Key& session,
                                       int32_t peer, uint64_t purpose, End end);
  Verdict judge(const Hello& hello) const;
  std::string peer_text(int32_t peer) const {
    return concat("rank ", peer, " (host ", peers_[static_cast<size_t>(peer)].host, ")");
  }

  const std::vector<MeshPeer> peers_;
  const Key key_;
  const TcpMeshOptions options_;
  UniqueFd epoll_;
  Mutex mutex_;
  std::unique_ptr<Acceptor> acceptor_ HVD_GUARDED_BY(mutex_);
  Entries entries_ HVD_GUARDED_BY(mutex_);
  std::map<int32_t, Address> last_good_ HVD_GUARDED_BY(mutex_);  // by peer
  size_t unclaimed_ = 0;  // read by judge(), which acceptor_ calls with the mutex held
};

Status TcpMesh::open(Listener listener) {
  const MutexLock lock(mutex_);
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return errno_status("mesh: epoll", errno);
  HVD_TRY_ASSIGN(acceptor_,
                 Acceptor::create(
                     std::move(listener), key_, {.epoch = options_.epoch, .rank = options_.rank},
                     [this](const Hello& hello) { return judge(hello); }, options_.accept));
  return watch(epoll_, acceptor_->descriptor());
}

Verdict TcpMesh::judge(const Hello& hello) const {
  if (hello.epoch != options_.epoch) return Verdict::kOtherEpoch;
  if (hello.peer != options_.rank) return Verdict::kOtherRank;
  // The lower rank dials.
  if (hello.rank < 0 || hello.rank >= options_.rank) return Verdict::kUnexpected;
  return unclaimed_ < kMostUnclaimed ? Verdict::kWelcome : Verdict::kTooMany;
}

Result<std::unique_ptr<Stream>> TcpMesh::connect(int32_t peer, uint64_t purpose) {
  if (peer < 0 || peer >= static_cast<int32_t>(peers_.size()) || peer == options_.rank) {
    return invalid_argument(
        concat("rank ", options_.rank, ": no stream to rank ", peer, " of ", peers_.size()));
  }
  const MutexLock lock(mutex_);
  const auto at = entries_.try_emplace({peer, purpose}).first;
  Entry& entry = at->second;
  if (entry.ready.empty() && entry.failure.is_ok()) {
    const bool first = entry.deadline.is_never();
    const bool dials = options_.rank < peer;
    // Whoever dials knows what went wrong, and so is the first to give up.
    const Nanoseconds more = dials ? Nanoseconds(0) : options_.wait_time / 10;
    if (first) entry.deadline = Deadline::after(options_.wait_time + more);
    if (dials) {
      if (first) entry.failure = start_dialling(entry, peer, purpose);
      advance(entry, peer, purpose);
    } else if (entry.deadline.passed()) {
      entry.failure = Status(
          StatusCode::kTimedOut,
          concat(peer_text(peer), " did not open a stream to rank ", options_.rank, " in time"));
    }
  }
  if (!entry.ready.empty()) {
    auto stream = std::move(entry.ready.front());
    entry.ready.pop_front();
    --unclaimed_;
    // What is left was opened by a peer that is one step ahead, for this rank's next call.
    if (entry.ready.empty()) {
      entries_.erase(at);
    } else {
      entry.deadline = Deadline::never();
    }
    return stream;
  }
  if (!entry.failure) {
    const Status failure = entry.failure;
    entries_.erase(at);
    return failure;
  }
  return std::unique_ptr<Stream>();
}

Status TcpMesh::start_dialling(Entry& entry, int32_t peer, uint64_t purpose) {
  const Hello hello{
      .epoch = options_.epoch, .rank = options_.rank, .peer = peer, .purpose = purpose};
  auto addresses = dial_order(peers_[static_cast<size_t>(peer)].addresses, options_.interfaces);
  // What worked before works again; a dead address costs its time once.
  if (const auto good = last_good_.find(peer); good != last_good_.end()) {
    std::stable_partition(addresses.begin(), addresses.end(),
                          [&](const Address& address) { return address == good->second; });
  }
  HVD_TRY_ASSIGN(entry.dialler, Dialler::start(peer_text(peer), std::move(addresses), key_, hello,
                                               entry.deadline, options_.dial));
  return watch(epoll_, entry.dialler->descriptor());
}

void TcpMesh::advance(Entry& entry, int32_t peer, uint64_t purpose) {
  if (entry.dialler == nullptr) return;
  auto connected = entry.dialler->poll();
  if (connected.is_ok() && *connected == nullptr) return;
  entry.dialler.reset();  // closing its descriptor takes it out of epoll
  if (!connected) {
    entry.failure = connected.status();
    return;
  }
  Dialler::Connected& link = **connected;
  last_good_.insert_or_assign(peer, link.address);
  auto stream =
      wrap(std::move(link.socket), link.address, link.session_key, peer, purpose, End::kDialler);
  if (!stream) {
    entry.failure = stream.status();
    return;
  }
  entry.ready.push_back(std::move(*stream));
  ++unclaimed_;
}

void TcpMesh::accept(Accepted accepted) {
  const Hello& hello = accepted.hello;
  Entry& entry = entries_[{hello.rank, hello.purpose}];
  auto stream = wrap(std::move(accepted.socket), accepted.from, accepted.session_key, hello.rank,
                     hello.purpose, End::kAcceptor);
  if (!stream) {
    entry.failure = stream.status();
    return;
  }
  entry.ready.push_back(std::move(*stream));
  ++unclaimed_;
}

Result<std::unique_ptr<Stream>> TcpMesh::wrap(UniqueFd socket, const Address& address,
                                              const Key& session, int32_t peer, uint64_t purpose,
                                              End end) {
  const TcpOptions options{.user_timeout = purpose == kControlPurpose
                                               ? options_.control_user_timeout
                                               : std::chrono::milliseconds(0),
                           .congestion_control = options_.congestion_control};
  HVD_TRY(prepare_tcp_socket(socket.get(), options));
  std::string text = concat("rank ", peer, " (host ", peers_[static_cast<size_t>(peer)].host, ", ",
                            to_text(address), ")");
  if (options_.protection == Protection::kNone ||
      (options_.protection == Protection::kGuarded && is_plain_lane(purpose))) {
    return make_socket_stream(std::move(socket), std::move(text));
  }
  const bool both_have_tls = peers_[static_cast<size_t>(peer)].has_tls &&
                             peers_[static_cast<size_t>(options_.rank)].has_tls;
  if (options_.protection == Protection::kAll || both_have_tls) {
    return make_tls_stream(std::move(socket), std::move(text), session,
                           end == End::kDialler ? TlsRole::kClient : TlsRole::kServer);
  }
  return make_sealed_stream(std::move(socket), std::move(text), session,
                            end == End::kDialler ? SealRole::kDialler : SealRole::kAcceptor);
}

void TcpMesh::poll() {
  const MutexLock lock(mutex_);
  for (Accepted& accepted : acceptor_->poll()) accept(std::move(accepted));
  for (auto& [key, entry] : entries_) advance(entry, key.first, key.second);
}

}  // namespace

Result<TcpPort> TcpPort::listen(std::span<const Address> addresses) {
  HVD_TRY_ASSIGN(Listener listener, Listener::listen(addresses));
  return TcpPort(std::move(listener));
}

Result<std::unique_ptr<Mesh>> make_tcp_mesh(TcpPort port, std::vector<MeshPeer> peers,
                                            const Key& key, const TcpMeshOptions& options) {
  if (options.protection == Protection::kAll) HVD_TRY(load_tls());
  auto mesh = std::make_unique<TcpMesh>(std::move(peers), key, options);
  HVD_TRY(mesh->open(std::move(port.listener_)));
  return std::unique_ptr<Mesh>(std::move(mesh));
}

}  // namespace hvd::net
