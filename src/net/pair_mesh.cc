#include "net/pair_mesh.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "net/socket_io.h"

namespace hvd::net {
namespace {

// Shared by a stream and the network, so that a cut finds the descriptor while it is in use only.
using SharedFd = std::shared_ptr<UniqueFd>;

class PairStream final : public Stream {
 public:
  PairStream(SharedFd socket, int32_t peer)
      : socket_(std::move(socket)), peer_(concat("rank ", peer, " (same process)")) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    if (!send_failure_) return send_failure_;
    auto sent = send_some(socket_->get(), parts);
    if (!sent) return send_failure_ = blame(peer_, sent.status());
    return sent;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    if (!receive_failure_) return receive_failure_;
    auto got = receive_some(socket_->get(), parts);
    if (!got) return receive_failure_ = blame(peer_, got.status());
    return got;
  }
  int descriptor() const override { return socket_->get(); }
  const std::string& peer() const override { return peer_; }

 private:
  SharedFd socket_;
  std::string peer_;
  Status send_failure_, receive_failure_;
};

Result<std::pair<SharedFd, SharedFd>> make_pair_of_sockets() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
    return errno_status("socket pair", errno);
  }
  return std::pair(std::make_shared<UniqueFd>(fds[0]), std::make_shared<UniqueFd>(fds[1]));
}

using Link = std::pair<int32_t, int32_t>;  // lower rank first
Link link_of(int32_t a, int32_t b) { return std::minmax(a, b); }

}  // namespace

struct PairNetwork::State {
  explicit State(int32_t ranks) : size(ranks) {}

  Result<std::unique_ptr<Stream>> connect(int32_t rank, int32_t peer, uint64_t purpose)
      HVD_EXCLUDES(mutex);
  void cut(Link link, Cut how) HVD_EXCLUDES(mutex);

  const int32_t size;
  Mutex mutex;
  // Ends that the other rank has not asked for yet: by owner, peer, purpose.
  std::map<std::tuple<int32_t, int32_t, uint64_t>, std::deque<SharedFd>> waiting
      HVD_GUARDED_BY(mutex);
  std::map<Link, std::vector<std::weak_ptr<UniqueFd>>> ends HVD_GUARDED_BY(mutex);
  std::map<Link, Cut> cuts HVD_GUARDED_BY(mutex);
  std::vector<SharedFd> dead_ends HVD_GUARDED_BY(mutex);  // other ends of silent links
};

Result<std::unique_ptr<Stream>> PairNetwork::State::connect(int32_t rank, int32_t peer,
                                                            uint64_t purpose) {
  if (peer < 0 || peer >= size || peer == rank) {
    return invalid_argument(concat("rank ", rank, ": no stream to rank ", peer, " of ", size));
  }
  const MutexLock lock(mutex);
  const Link link = link_of(rank, peer);
  if (const auto cut = cuts.find(link); cut != cuts.end()) {
    if (cut->second == Cut::kSilent) return std::unique_ptr<Stream>();
    return Status(StatusCode::kPeerLost, concat("rank ", peer, " (same process): the link is cut"));
  }
  auto& mine = waiting[{rank, peer, purpose}];
  SharedFd socket;
  if (!mine.empty()) {
    socket = std::move(mine.front());
    mine.pop_front();
  } else {
    HVD_TRY_ASSIGN(auto both, make_pair_of_sockets());
    socket = both.first;
    waiting[{peer, rank, purpose}].push_back(both.second);
    ends[link].push_back(both.first);
    ends[link].push_back(both.second);
  }
  return std::unique_ptr<Stream>(std::make_unique<PairStream>(std::move(socket), peer));
}

void PairNetwork::State::cut(Link link, Cut how) {
  const MutexLock lock(mutex);
  cuts[link] = how;
  for (const auto& weak : ends[link]) {
    const SharedFd end = weak.lock();
    if (end == nullptr) continue;
    if (how == Cut::kClosed) {
      shutdown(end->get(), SHUT_RDWR);
      continue;
    }
    // Puts a socket nobody talks to behind the same number.
    auto fresh = make_pair_of_sockets();
    if (!fresh) continue;
    dup3(fresh->first->get(), end->get(), O_CLOEXEC);
    dead_ends.push_back(fresh->second);
  }
}

namespace {

class PairMesh final : public Mesh {
 public:
  using Connect = std::function<Result<std::unique_ptr<Stream>>(int32_t, uint64_t)>;
  explicit PairMesh(Connect connect)
      : connect_(std::move(connect)), never_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<std::unique_ptr<Stream>> connect(int32_t peer, uint64_t purpose) override {
    return connect_(peer, purpose);
  }
  void poll() override {}
  int descriptor() const override { return never_.get(); }

 private:
  Connect connect_;
  UniqueFd never_;  // nothing is ever left to do
};

}  // namespace

PairNetwork::PairNetwork(int32_t size) : state_(std::make_shared<State>(size)) {}
PairNetwork::~PairNetwork() = default;

std::unique_ptr<Mesh> PairNetwork::mesh(int32_t rank) {
  return std::make_unique<PairMesh>([state = state_, rank](int32_t peer, uint64_t purpose) {
    return state->connect(rank, peer, purpose);
  });
}

void PairNetwork::cut(int32_t a, int32_t b, Cut how) { state_->cut(link_of(a, b), how); }

}  // namespace hvd::net
