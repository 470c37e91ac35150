#include "net/tcp_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "net/socket_io.h"

namespace hvd::net {
namespace {

// Idle connections: a probe after 1 s, then each second; dead after 3 without an answer.
constexpr int kKeepIdleSeconds = 1, kKeepIntervalSeconds = 1, kKeepCount = 3;

class SocketStream final : public Stream {
 public:
  SocketStream(UniqueFd socket, std::string peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {}

  Result<size_t> send(std::span<const iovec> parts) override {
    if (!send_failure_) return send_failure_;
    auto sent = send_some(socket_.get(), parts);
    if (!sent) return send_failure_ = blame(peer_, sent.status());
    return sent;
  }
  Result<size_t> receive(std::span<const iovec> parts) override {
    if (!receive_failure_) return receive_failure_;
    auto got = receive_some(socket_.get(), parts);
    if (!got) return receive_failure_ = blame(peer_, got.status());
    return got;
  }
  int descriptor() const override { return socket_.get(); }
  bool is_socket() const override { return true; }
  const std::string& peer() const override { return peer_; }

 private:
  UniqueFd socket_;
  std::string peer_;
  Status send_failure_;     // of the sending thread
  Status receive_failure_;  // of the receiving one
};

Status set_option(int socket, int level, int name, int value, const char* what) {
  if (setsockopt(socket, level, name, &value, sizeof value) == 0) return Status::ok();
  return errno_status(concat("setting ", what, " of a connection"), errno);
}

}  // namespace

Status prepare_tcp_socket(int socket, const TcpOptions& options) {
  HVD_TRY(set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  HVD_TRY(set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
  HVD_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds, "TCP_KEEPIDLE"));
  HVD_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds, "TCP_KEEPINTVL"));
  HVD_TRY(set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount, "TCP_KEEPCNT"));
  if (options.user_timeout.count() > 0) {
    HVD_TRY(set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
                       static_cast<int>(options.user_timeout.count()), "TCP_USER_TIMEOUT"));
  }
  const std::string& control = options.congestion_control;
  if (!control.empty() && setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, control.data(),
                                     static_cast<socklen_t>(control.size())) != 0) {
    return errno_status(concat("HOROVOD_TCP_CONGESTION '", control,
                               "' (see /proc/sys/net/ipv4/tcp_allowed_congestion_control)"),
                        errno);
  }
  return Status::ok();
}

std::unique_ptr<Stream> make_socket_stream(UniqueFd socket, std::string peer) {
  const int flags = fcntl(socket.get(), F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) == 0) fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  return std::make_unique<SocketStream>(std::move(socket), std::move(peer));
}

}  // namespace hvd::net
