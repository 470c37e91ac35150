// sockets.h - what the tests of the network share: loopback addresses, keys, plain sockets, waiting
// with a deadline.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "net/address.h"
#include "net/handshake.h"
#include "net/keys/key.h"
#include "net/stream.h"

namespace hvd::net::test {

inline constexpr auto kPatience = std::chrono::seconds(20);
inline Deadline patience() { return Deadline::after(kPatience); }

inline Key key_of(uint8_t fill) {
  std::array<uint8_t, kKeyBytes> bytes;
  bytes.fill(fill);
  return Key(bytes);
}

inline Verdict welcome(const Hello&) { return Verdict::kWelcome; }

inline Result<size_t> send_text(Stream& stream, std::string_view text) {
  const iovec part{const_cast<char*>(text.data()), text.size()};
  return stream.send({&part, 1});
}

inline Address loopback(uint16_t port = 0) { return *parse_host("127.0.0.1", port); }
inline Address loopback6(uint16_t port = 0) { return *parse_host("::1", port); }

// An address of loopback that no other process uses, so that a port of it stays free once it was.
inline Address own_loopback(uint16_t port = 0) {
  const auto id = static_cast<uint32_t>(getpid());
  Address address = loopback(port);
  address.bytes[1] = static_cast<uint8_t>(64 | (id >> 16 & 63));
  address.bytes[2] = static_cast<uint8_t>(id >> 8);
  address.bytes[3] = static_cast<uint8_t>(id);
  return address;
}

inline std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// A blocking TCP connection, as a stranger would make it.
inline UniqueFd connect_plainly(const Address& address) {
  const int family = address.family == Family::kIpv4 ? AF_INET : AF_INET6;
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress name = to_socket_address(address);
  EXPECT_EQ(::connect(fd.get(), name.get(), name.length), 0) << to_text(address);
  return fd;
}

// A port of loopback that nobody listens on: bound for as long as the object lives.
class DeadPort {
 public:
  explicit DeadPort(const Address& where = loopback()) {
    fd_.reset(::socket(where.family == Family::kIpv4 ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_CLOEXEC, 0));
    SocketAddress name = to_socket_address(where);
    EXPECT_EQ(::bind(fd_.get(), name.get(), name.length), 0);
    EXPECT_EQ(::getsockname(fd_.get(), name.get(), &name.length), 0);
    address_ = *from_socket_address(name.get());
  }
  const Address& address() const { return address_; }
  int descriptor() const { return fd_.get(); }
  // From now on somebody does. Without blocking.
  void listen() {
    EXPECT_EQ(fcntl(fd_.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
  }

 private:
  UniqueFd fd_;
  Address address_;
};

// Calls `done` whenever one of the descriptors is ready, until it returns true. False: out of time.
template <typename Done>
bool wait_until(std::initializer_list<int> descriptors, Done&& done) {
  const Deadline deadline = Deadline::after(kPatience);
  for (;;) {
    if (done()) return true;
    if (deadline.passed()) return false;
    std::vector<pollfd> items;
    for (const int fd : descriptors) items.push_back({fd, POLLIN, 0});
    // Without descriptors: look again soon, for what tells nobody when it is ready.
    ::poll(items.data(), items.size(), items.empty() ? 1 : 1000);
  }
}

// Did the other end close? Waits for it; fails if it sends something first.
inline bool is_closed_without_a_word(const UniqueFd& socket) {
  pollfd item{socket.get(), POLLIN, 0};
  if (::poll(&item, 1, 20000) != 1) return false;
  char byte;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;
}

inline bool has_ipv6_loopback() {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress name = to_socket_address(loopback6());
  return fd.valid() && ::bind(fd.get(), name.get(), name.length) == 0;
}

}  // namespace hvd::net::test
