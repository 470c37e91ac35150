#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::net {
namespace {

struct Attempt {
  UniqueFd socket = {};
  int error = 0;
  std::string what = {};
};

Attempt failed(const char* step, int error) {
  return {.error = error, .what = errno_status(step, error).message()};
}

Attempt listen_on(const Address& address) {
  if (address.is_wildcard()) {
    return {.error = EINVAL, .what = "a wildcard address is never listened on"};
  }
  const int family = address.family == Family::kIpv4 ? AF_INET : AF_INET6;
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket.valid()) return failed("socket", errno);
  // A port that somebody chose must work again while connections of the last job linger. Where the
  // kernel chooses, it must not choose one of those, so the permission comes after the choice.
  const int on = 1;
  const auto allow_reuse = [&] {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  };
  if (address.port != 0) allow_reuse();
  const SocketAddress name = to_socket_address(address);
  if (bind(socket.get(), name.get(), name.length) != 0) return failed("bind", errno);
  if (address.port == 0) allow_reuse();
  if (::listen(socket.get(), SOMAXCONN) != 0) return failed("listen", errno);
  return {.socket = std::move(socket)};
}

Result<Address> bound_address(const UniqueFd& socket) {
  SocketAddress name;
  if (getsockname(socket.get(), name.get(), &name.length) != 0) {
    return errno_status("getsockname", errno);
  }
  return from_socket_address(name.get());
}

}  // namespace

Result<Listener> Listener::listen(std::span<const Address> addresses) {
  if (addresses.empty()) return invalid_argument("listener: no address given");
  Listener out;
  std::vector<std::string> failures;
  for (const Address& address : addresses) {
    Attempt attempt = listen_on(address);
    if (!attempt.socket.valid()) {
      failures.push_back(concat(to_text(address), ": ", attempt.what));
      out.left_out_.push_back({address, attempt.error, std::move(attempt.what)});
      continue;
    }
    HVD_TRY_ASSIGN(const Address bound, bound_address(attempt.socket));
    out.addresses_.push_back(bound);
    out.sockets_.push_back(std::move(attempt.socket));
  }
  if (out.sockets_.empty()) {
    return precondition_error(concat("cannot listen on any address: ", join_text(failures, "; ")));
  }
  return out;
}

Listener::Connection Listener::accept(const UniqueFd& socket) {
  for (;;) {
    SocketAddress name;
    UniqueFd fd(accept4(socket.get(), name.get(), &name.length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      auto from = from_socket_address(name.get());
      if (!from) continue;
      return {.socket = std::move(fd), .from = *from};
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    // The others are failures of the newcomer alone: look for the next one.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
        errno == EBADF || errno == EINVAL) {
      return {.error = errno};
    }
  }
}

}  // namespace hvd::net
