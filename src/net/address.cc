#include "net/address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::net {
namespace {

constexpr std::array<uint8_t, 12> kIpv4InIpv6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Status bad_address(std::string_view text) {
  return invalid_argument(
      concat("expected an address like 10.0.0.1:4100 or [fd00::2]:4100, got '", text, "'"));
}

Address from_ipv6_bytes(const in6_addr& in, uint16_t port, uint32_t scope) {
  Address address{.family = Family::kIpv6, .port = port, .scope = scope};
  std::memcpy(address.bytes.data(), &in, sizeof in);
  if (std::equal(kIpv4InIpv6.begin(), kIpv4InIpv6.end(), address.bytes.begin())) {
    Address plain{.family = Family::kIpv4, .port = port};
    std::copy_n(address.bytes.begin() + 12, 4, plain.bytes.begin());
    return plain;
  }
  // Only link-local addresses have a scope that means anything; others compare equal without.
  if (!address.is_link_local()) address.scope = 0;
  return address;
}

Result<uint32_t> parse_scope(std::string_view text) {
  if (const auto number = parse_integer(text, {.least = 1, .most = UINT32_MAX}); number.is_ok()) {
    return static_cast<uint32_t>(*number);
  }
  const uint32_t index = if_nametoindex(std::string(text).c_str());
  if (index == 0) return invalid_argument(concat("no interface '", text, "' on this host"));
  return index;
}

}  // namespace

bool Address::is_loopback() const {
  if (family == Family::kIpv4) return bytes[0] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t b) { return b == 0; }) &&
         bytes[15] == 1;
}

bool Address::is_link_local() const {
  if (family == Family::kIpv4) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool Address::is_wildcard() const {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b == 0; });
}

Result<Address> parse_host(std::string_view text, uint16_t port) {
  text = trim(text);
  const size_t percent = text.find('%');
  const std::string numbers(text.substr(0, percent));
  in_addr v4{};
  if (percent == std::string_view::npos && inet_pton(AF_INET, numbers.c_str(), &v4) == 1) {
    Address address{.family = Family::kIpv4, .port = port};
    std::memcpy(address.bytes.data(), &v4, sizeof v4);
    return address;
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, numbers.c_str(), &v6) != 1) {
    return invalid_argument(concat("expected a numeric IPv4 or IPv6 address, got '", text, "'"));
  }
  uint32_t scope = 0;
  if (percent != std::string_view::npos) {
    HVD_TRY_ASSIGN(scope, parse_scope(text.substr(percent + 1)));
  }
  return from_ipv6_bytes(v6, port, scope);
}

Result<Address> parse_address(std::string_view text) {
  text = trim(text);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text);
  const auto port = parse_integer(text.substr(colon + 1), {.least = 1, .most = 65535});
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets nobody knows where an IPv6 address ends and the port begins.
  if (!port || bracketed != (host.find(':') != std::string_view::npos)) return bad_address(text);
  auto address = parse_host(host, static_cast<uint16_t>(*port));
  if (!address) return blame(concat("address '", text, "'"), address.status());
  return address;
}

Result<std::vector<Address>> parse_addresses(std::string_view text) {
  std::vector<Address> addresses;
  for (;;) {
    const size_t comma = text.find(',');
    HVD_TRY_ASSIGN(const Address address, parse_address(text.substr(0, comma)));
    addresses.push_back(address);
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.family == Family::kIpv4) {
    inet_ntop(AF_INET, address.bytes.data(), text, sizeof text);
    return concat(std::string_view(text), ":", address.port);
  }
  inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  const std::string scope = address.scope == 0 ? "" : concat("%", address.scope);
  return concat("[", std::string_view(text), scope, "]:", address.port);
}

std::string to_text(std::span<const Address> addresses) {
  std::vector<std::string> texts;
  for (const Address& address : addresses) texts.push_back(to_text(address));
  return join_text(texts, ",");
}

SocketAddress to_socket_address(const Address& address) {
  SocketAddress out;
  if (address.family == Family::kIpv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    std::memcpy(&in.sin_addr, address.bytes.data(), 4);
    std::memcpy(&out.storage, &in, sizeof in);
    out.length = sizeof in;
    return out;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(address.port);
  in.sin6_scope_id = address.scope;
  std::memcpy(&in.sin6_addr, address.bytes.data(), 16);
  std::memcpy(&out.storage, &in, sizeof in);
  out.length = sizeof in;
  return out;
}

Result<Address> from_socket_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, address, sizeof in);
    Address out{.family = Family::kIpv4, .port = ntohs(in.sin_port)};
    std::memcpy(out.bytes.data(), &in.sin_addr, 4);
    return out;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, address, sizeof in);
    return from_ipv6_bytes(in.sin6_addr, ntohs(in.sin6_port), in.sin6_scope_id);
  }
  return invalid_argument(
      concat("expected an IPv4 or IPv6 address, got family ", int{address->sa_family}));
}

std::vector<Address> without_scopes(std::vector<Address> addresses) {
  for (Address& address : addresses) address.scope = 0;
  return addresses;
}

bool shares_prefix(const Address& a, const Address& b, int prefix_length) {
  if (a.family != b.family) return false;
  for (int bit = 0; bit < prefix_length; bit += 8) {
    const int left = std::min(8, prefix_length - bit);
    const uint8_t mask = static_cast<uint8_t>(0xff << (8 - left));
    const size_t i = static_cast<size_t>(bit / 8);
    if ((a.bytes[i] & mask) != (b.bytes[i] & mask)) return false;
  }
  return true;
}

}  // namespace hvd::net
