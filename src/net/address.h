// address.h - numeric IPv4 and IPv6 addresses with port and scope, and lists of them. Nothing here
// asks a name server. Values; any thread; never blocks.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::net {

enum class Family : uint8_t { kIpv4, kIpv6 };

struct Address {
  Family family = Family::kIpv4;
  std::array<uint8_t, 16> bytes{};  // network order; IPv4 uses the first four
  uint16_t port = 0;
  uint32_t scope = 0;  // index of the interface of a link-local IPv6 address; 0: not said

  bool operator==(const Address&) const = default;
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_wildcard() const;
};

// "10.0.0.1:4100", "[fd00::2]:4100", "[fe80::1%eth0]:4100" (the scope as a name or a number). An
// IPv4 address inside IPv6 (::ffff:10.0.0.1) becomes plain IPv4.
Result<Address> parse_address(std::string_view text);
// The same without a port, and without brackets.
Result<Address> parse_host(std::string_view text, uint16_t port);
// "10.0.0.1:4100,[fd00::2]:4100": one or more.
Result<std::vector<Address>> parse_addresses(std::string_view text);
// As parse_address reads it; the scope as a number.
std::string to_text(const Address& address);
std::string to_text(std::span<const Address> addresses);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};
SocketAddress to_socket_address(const Address& address);
// Fails for families other than IPv4 and IPv6.
Result<Address> from_socket_address(const sockaddr* address);

// A scope means nothing on another host.
std::vector<Address> without_scopes(std::vector<Address> addresses);

// Do the first `prefix_length` bits agree? False between families.
bool shares_prefix(const Address& a, const Address& b, int prefix_length);

}  // namespace hvd::net
