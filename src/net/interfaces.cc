#include "net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>

#include "base/parse.h"
#include "base/text.h"

namespace hvd::net {
namespace {

int prefix_length(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  if (mask->sa_family == AF_INET) {
    bits = std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr);
  } else if (mask->sa_family == AF_INET6) {
    for (const uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
      bits += std::popcount(byte);
    }
  }
  return bits;
}

// IPv4 has link-local addresses too, but they need no scope and are rare; only IPv6's, which every
// interface has, go last.
bool needs_scope(const Address& address) {
  return address.family == Family::kIpv6 && address.is_link_local();
}

bool same_host(const Address& a, const Address& b) {
  return a.family == b.family && a.bytes == b.bytes;
}

std::string names_text(std::span<const Interface> all) {
  std::vector<std::string> names;
  for (const Interface& one : all) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  return names.empty() ? "none" : join_text(names);
}

enum Rank : int { kSameSubnet, kRouted, kLinkLocal, kOwn };

int dial_rank(const Address& address, std::span<const Interface> own) {
  int rank = needs_scope(address) ? kLinkLocal : kRouted;
  for (const Interface& one : own) {
    if (same_host(one.address, address)) return kOwn;
    if (rank == kRouted && !one.is_loopback &&
        shares_prefix(one.address, address, one.prefix_length)) {
      rank = kSameSubnet;
    }
  }
  return rank;
}

}  // namespace

Result<std::vector<Interface>> all_interfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return errno_status("network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    // Not running: up, but no cable.
    constexpr unsigned kNeeded = IFF_UP | IFF_RUNNING;
    if (at->ifa_addr == nullptr || (at->ifa_flags & kNeeded) != kNeeded) continue;
    auto address = from_socket_address(at->ifa_addr);
    if (!address) continue;  // a link-layer address
    all.push_back({.name = at->ifa_name,
                   .index = if_nametoindex(at->ifa_name),
                   .address = *address,
                   .prefix_length = prefix_length(at->ifa_netmask),
                   .is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return all;
}

std::vector<std::string> parse_interface_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (const auto name = trim(text.substr(0, comma)); !name.empty()) names.emplace_back(name);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

Result<std::vector<Address>> usable_addresses(std::span<const Interface> all,
                                              std::span<const std::string> names) {
  std::vector<Address> out;
  const auto take = [&](auto&& wanted) {
    for (const Interface& one : all) {
      if (wanted(one)) out.push_back(one.address);
    }
  };
  if (names.empty()) {
    take([](const Interface& one) { return !one.is_loopback; });
    if (out.empty()) take([](const Interface& one) { return one.is_loopback; });
    if (out.empty()) return precondition_error("no network interface is up on this host");
  }
  for (const std::string& name : names) {
    const size_t before = out.size();
    take([&](const Interface& one) { return one.name == name; });
    if (out.size() == before) {
      return precondition_error(
          concat("network interface '", name,
                 "' is not up or has no address; there are: ", names_text(all)));
    }
  }
  std::stable_partition(out.begin(), out.end(), [](const Address& a) { return !needs_scope(a); });
  return out;
}

std::vector<Address> dial_order(std::span<const Address> peer, std::span<const Interface> own) {
  std::vector<Address> candidates;
  for (const Address& address : peer) {
    if (!needs_scope(address)) {
      candidates.push_back(address);
      continue;
    }
    for (const Interface& one : own) {
      if (one.is_loopback || !needs_scope(one.address)) continue;
      candidates.push_back(address);
      candidates.back().scope = one.index;
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Address& a, const Address& b) {
    return dial_rank(a, own) < dial_rank(b, own);
  });
  return candidates;
}

}  // namespace hvd::net
