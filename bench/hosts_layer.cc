// The layer between hosts alone: allreduce of two or more hosts over plain TCP sockets, without
// launcher, keys or engine. Run one process per member, each with the same list of addresses:
//   hvd_bench_hosts_layer MEMBER ADDRESS[,ADDRESS...] PORT [RANKS_PER_HOST [WIRE [SMALLEST]]]
// Address i is host i; the members of host i are i * RANKS_PER_HOST and following. WIRE is float32
// or float16, SMALLEST the bytes to begin with. Member 0 prints.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "collective/hosts/bare_hosts.h"

namespace {

using hvd::Result;
using hvd::Status;
using hvd::UniqueFd;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "hosts_layer: %s\n", why.c_str());
  std::exit(1);
}

class TcpStream final : public hvd::net::Stream {
 public:
  TcpStream(UniqueFd fd, int peer) : fd_(std::move(fd)), peer_(hvd::concat("rank ", peer)) {
    const int one = 1;
    setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  Result<size_t> send(std::span<const iovec> parts) override {
    msghdr message = of(parts);
    return count(sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    msghdr message = of(parts);
    const ssize_t bytes = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (bytes == 0) return Status(hvd::StatusCode::kPeerLost, peer_ + " has left");
    return count(bytes);
  }
  int descriptor() const override { return fd_.get(); }
  const std::string& peer() const override { return peer_; }

 private:
  static msghdr of(std::span<const iovec> parts) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return message;
  }
  Result<size_t> count(ssize_t bytes) const {
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return hvd::errno_status(peer_, errno);
  }
  const UniqueFd fd_;
  const std::string peer_;
};

// Everything is connected before the start; streams are handed out by peer.
class ReadyMesh final : public hvd::net::Mesh {
 public:
  Result<std::unique_ptr<hvd::net::Stream>> connect(int32_t peer, uint64_t) override {
    return std::move(streams.at(peer));
  }
  void poll() override {}
  int descriptor() const override { return -1; }
  std::map<int32_t, std::unique_ptr<hvd::net::Stream>> streams;
};

sockaddr_in address_of(const std::string& text, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
    give_up("'" + text + "' is no IPv4 address");
  return address;
}

// Every member listens at port + member; the higher member dials and says who it is.
void connect_all(ReadyMesh& mesh, int me, const std::vector<std::string>& hosts, int per_host,
                 int port) {
  const int size = static_cast<int>(hosts.size()) * per_host;
  const auto host_of = [&](int member) { return hosts[static_cast<size_t>(member / per_host)]; };
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in own = address_of(host_of(me), port + me);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0 ||
      listen(listener.get(), 64) != 0)
    give_up(hvd::errno_status("listening at " + host_of(me), errno).message());
  for (int peer = 0; peer < me; ++peer) {
    if (peer / per_host == me / per_host) continue;
    sockaddr_in there = address_of(host_of(peer), port + peer);
    UniqueFd fd;
    for (int attempt = 0;; ++attempt) {
      fd = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(fd.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0) break;
      if (attempt == 200) give_up("no answer from " + host_of(peer));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (write(fd.get(), &me, sizeof me) != sizeof me) give_up("cannot write to a peer");
    mesh.streams[peer] = std::make_unique<TcpStream>(std::move(fd), peer);
  }
  for (int left = size - (me / per_host + 1) * per_host; left > 0; --left) {
    UniqueFd fd(accept(listener.get(), nullptr, nullptr));
    int peer = 0;
    if (!fd.valid() || read(fd.get(), &peer, sizeof peer) != sizeof peer) give_up("bad peer");
    mesh.streams[peer] = std::make_unique<TcpStream>(std::move(fd), peer);
  }
}

void check(const Status& status) {
  if (!status.is_ok()) give_up(status.message());
}

// Seconds of the fastest and of the median round.
struct Timing {
  double best, median;
};
Timing time_allreduce(hvd::hosts::BareHosts& group, std::vector<float>& data, size_t count,
                      hvd::DType wire) {
  const double bytes = static_cast<double>(count) * sizeof(float);
  const int calls = static_cast<int>(std::clamp(2e7 / bytes, 1.0, 400.0));
  hvd::native::Work work;
  std::vector<double> rounds;
  for (int round = -1; round < 9; ++round) {
    check(group.barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      work.reset(hvd::native::WorkKind::kReduce);
      hvd::native::Run& run = work.next_run();
      run.numeric.slot_dtype = wire;
      run.numeric.post = hvd::Scale{1.0, group.hosts().layout().size()};
      run.add(data.data(), data.data(), count);
      check(group.run(work));
    }
    const std::chrono::duration<double> span = std::chrono::steady_clock::now() - begin;
    if (round >= 0) rounds.push_back(span.count() / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return {rounds.front(), rounds[rounds.size() / 2]};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) give_up("MEMBER ADDRESS[,ADDRESS...] PORT [RANKS_PER_HOST [WIRE [SMALLEST]]]");
  const int me = std::atoi(argv[1]);
  std::vector<std::string> hosts;
  std::istringstream list(argv[2]);
  for (std::string one; std::getline(list, one, ',');) hosts.push_back(one);
  const int per_host = argc > 4 ? std::atoi(argv[4]) : 1;
  const bool narrow = argc > 5 && std::string(argv[5]) == "float16";
  const hvd::DType wire = narrow ? hvd::DType::kFloat16 : hvd::DType::kFloat32;
  const size_t smallest = argc > 6 ? static_cast<size_t>(std::atol(argv[6])) : 4;

  hvd::shm::JobOptions options;
  options.rank = me % per_host;
  options.size = per_host;
  options.job_id = hvd::concat("hosts-layer-", argv[3], "-", me / per_host);
  auto job = hvd::shm::Job::meet(options);
  check(job.is_ok() ? Status::ok() : job.status());
  ReadyMesh mesh;
  connect_all(mesh, me, hosts, per_host, std::atoi(argv[3]));

  std::vector<int> labels;
  std::vector<int32_t> ranks;
  for (int m = 0; m < static_cast<int>(hosts.size()) * per_host; ++m) {
    labels.push_back(m / per_host);
    ranks.push_back(m);
  }
  hvd::hosts::BareHosts group(**job, mesh,
                              {.layout = hvd::hosts::HostLayout::of(labels),
                               .me = me,
                               .channel = 0,
                               .global_ranks = ranks});
  // Hosts may be namespaces of one machine.
  if (labels.size() > std::thread::hardware_concurrency()) group.set_spin_count(0);
  std::vector<float> data(16 << 20, 1.0f);
  if (me == 0) std::printf("%12s %12s %12s %10s\n", "bytes", "best us", "median us", "GB/s");
  for (size_t bytes = std::max<size_t>(smallest, 4); bytes <= size_t{64} << 20; bytes *= 4) {
    const Timing timing = time_allreduce(group, data, bytes / sizeof(float), wire);
    // Each host sends and receives 2 (H - 1) / H of the data; with two hosts, once its size.
    if (me == 0) {
      std::printf("%12zu %12.1f %12.1f %10.3f\n", bytes, timing.best * 1e6, timing.median * 1e6,
                  static_cast<double>(bytes) / timing.median / 1e9);
      std::fflush(stdout);
    }
  }
  for (const float value : data) {
    if (value != 1.0f) give_up("wrong result");
  }
  check(group.barrier());
  return 0;
}
