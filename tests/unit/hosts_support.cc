#include "tests/unit/hosts_support.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "base/text.h"

namespace hvd::testing {
namespace {

class SocketStream final : public net::Stream {
 public:
  SocketStream(int descriptor, int32_t peer) : fd_(descriptor), peer_(concat("rank ", peer)) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    return count(sendmsg(fd_.get(), &message(parts), MSG_DONTWAIT | MSG_NOSIGNAL), "sending to ");
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    const ssize_t bytes = recvmsg(fd_.get(), &message(parts), MSG_DONTWAIT);
    if (bytes == 0) return lost("the stream has ended");
    return count(bytes, "receiving from ");
  }
  int descriptor() const override { return fd_.get(); }
  bool is_socket() const override { return true; }
  const std::string& peer() const override { return peer_; }

 private:
  msghdr& message(std::span<const iovec> parts) {
    message_ = {};
    message_.msg_iov = const_cast<iovec*>(parts.data());
    message_.msg_iovlen = parts.size();
    return message_;
  }
  Status lost(const std::string& why) const {
    return Status(StatusCode::kPeerLost, concat("lost ", peer_, ": ", why));
  }
  Result<size_t> count(ssize_t bytes, const char* what) const {
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EAGAIN || errno == EINTR) return size_t{0};
    return lost(errno_status(what + peer_, errno).message());
  }

  UniqueFd fd_;
  const std::string peer_;
  msghdr message_{};
};

}  // namespace

class SwitchMesh final : public net::Mesh {
 public:
  SwitchMesh(SocketSwitch& sockets, int32_t rank)
      : sockets_(sockets), rank_(rank), always_ready_(eventfd(1, EFD_CLOEXEC)) {}
  Result<std::unique_ptr<net::Stream>> connect(int32_t peer, uint64_t purpose) override {
    return sockets_.take(rank_, peer, purpose);
  }
  void poll() override {}
  int descriptor() const override { return always_ready_.get(); }

 private:
  SocketSwitch& sockets_;
  const int32_t rank_;
  const UniqueFd always_ready_;
};

SocketSwitch::~SocketSwitch() {
  for (auto& [key, cable] : cables_) {
    for (size_t end = 0; end < 2; ++end) {
      if (!cable.taken[end] && cable.ends[end] >= 0) close(cable.ends[end]);
    }
  }
}

std::unique_ptr<net::Mesh> SocketSwitch::mesh_of(int32_t rank) {
  return std::make_unique<SwitchMesh>(*this, rank);
}

Result<std::unique_ptr<net::Stream>> SocketSwitch::take(int32_t rank, int32_t peer,
                                                        uint64_t purpose) {
  const std::lock_guard lock(mutex_);
  Cable& cable = cables_[{std::min(rank, peer), std::max(rank, peer), purpose}];
  const size_t end = rank < peer ? 0 : 1;
  if (cable.taken[end]) return unknown_error("a stream is given out once");
  if (++cable.asks[end] <= options_.asks_before_ready) return std::unique_ptr<net::Stream>();
  if (cable.ends[0] < 0) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, cable.ends) != 0)
      return errno_status("socketpair", errno);
    for (const int fd : cable.ends) {
      const int bytes = options_.buffer_bytes;
      if (bytes > 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
  }
  cable.taken[end] = true;
  return std::unique_ptr<net::Stream>(std::make_unique<SocketStream>(cable.ends[end], peer));
}

void SocketSwitch::cut(int32_t a, int32_t b) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, cable] : cables_) {
    if (std::get<0>(key) == std::min(a, b) && std::get<1>(key) == std::max(a, b))
      shutdown(cable.ends[0], SHUT_RDWR);
  }
}

void run_hosts(const std::vector<int>& labels, const std::function<void(HostRank&)>& function,
               const SocketSwitch::Options& options) {
  const auto layout = collective::hosts::HostLayout::of(labels);
  SocketSwitch sockets(options);
  std::vector<std::vector<std::unique_ptr<shm::Job>>> jobs;
  for (const auto& members : layout.members) {
    shm::JobOptions job_options;
    job_options.job_id = "hosts";
    job_options.arena_bytes = 1 << 20;
    auto host = shm::Job::in_process(static_cast<int>(members.size()), job_options);
    ASSERT_TRUE(host.is_ok()) << host.status().message();
    jobs.push_back(std::move(*host));
  }
  std::vector<std::unique_ptr<net::Mesh>> meshes;
  std::vector<std::unique_ptr<collective::hosts::BareHosts>> groups;
  std::vector<int32_t> global_ranks;
  for (int m = 0; m < layout.size(); ++m) global_ranks.push_back(100 + m);
  for (int m = 0; m < layout.size(); ++m) {
    meshes.push_back(sockets.mesh_of(global_ranks[static_cast<size_t>(m)]));
    shm::Job& job =
        *jobs[static_cast<size_t>(layout.host(m))][static_cast<size_t>(layout.place(m))];
    groups.push_back(std::make_unique<collective::hosts::BareHosts>(
        job, *meshes.back(),
        collective::hosts::HostLinkOptions{.layout = layout,
                                           .me = m,
                                           .channel = 7,
                                           .global_ranks = global_ranks,
                                           .pace = options.pace}));
  }
  for (const auto& group : groups) group->set_spin_count(0);  // more members than cores
  std::vector<std::jthread> threads;
  for (int m = 0; m < layout.size(); ++m) {
    threads.emplace_back([&, m] {
      HostRank rank{m, layout.size(), *groups[static_cast<size_t>(m)], sockets};
      function(rank);
    });
  }
}

std::string layout_text(const std::vector<int>& labels) {
  std::string text;
  for (const auto& members : collective::hosts::HostLayout::of(labels).members)
    text += concat(text.empty() ? "" : "+", members.size());
  return text;
}

const std::vector<std::vector<int>>& all_layouts() {
  static const std::vector<std::vector<int>> kLayouts = {
      {0, 1},    {0, 0, 1, 1},       {0, 0, 0, 1},
      {0, 1, 2}, {0, 1, 2, 0, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  return kLayouts;
}

}  // namespace hvd::testing
