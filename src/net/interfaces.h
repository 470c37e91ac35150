// interfaces.h - the addresses this host can be reached at, and which address of a peer to try
// first. Any thread; asks the kernel, never the network.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/address.h"

namespace hvd::net {

struct Interface {
  std::string name;
  uint32_t index = 0;
  Address address{};  // port 0
  int prefix_length = 0;
  bool is_loopback = false;
};

// Every address of every interface that is up and has a carrier, loopback included, in the order of
// the kernel.
Result<std::vector<Interface>> all_interfaces();

// "eth0,ib0" as in HOROVOD_GLOO_IFACE and --network-interfaces; empty: no restriction.
std::vector<std::string> parse_interface_names(std::string_view text);

// The addresses to listen on: of the named interfaces, or without names of all but loopback (of
// loopback if there is nothing else). IPv4 and global IPv6 in the order of `all`, link-local IPv6
// last. A name that is not there, or has no address, is an error that lists what is.
Result<std::vector<Address>> usable_addresses(std::span<const Interface> all,
                                              std::span<const std::string> names);

// The order in which to dial the addresses of a peer on another host: those that share a subnet
// with one of ours first, link-local ones last but one, and last those that are our own (a bridge
// of containers has the same address on every host). A link-local address becomes one candidate per
// interface of ours, because its scope means nothing on another host.
std::vector<Address> dial_order(std::span<const Address> peer, std::span<const Interface> own);

}  // namespace hvd::net
