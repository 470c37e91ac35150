// hosts.h - lists of hosts: which machines, how many workers each takes. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hvd::launch {

struct HostSlots {
  std::string host;
  int32_t slots = 0;
  bool operator==(const HostSlots&) const = default;
};

// "h1:2,h2:4"; an IPv6 address stands in brackets: "[fd00::1]:2". Entries as they are named: a host
// may come twice, and may have no slot. Errors do not say where the list came from.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// One host per line: "h1 slots=2" (Open MPI), "h1:2" (MPICH, Intel MPI) or "h1" alone, which takes
// `default_slots`. Empty lines and what follows a # do not count. Errors name the line.
Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, int32_t default_slots);
// Nothing that counts stands in it.
bool names_no_host(std::string_view text);

// Whether a name may stand in the arguments of ssh and in a shell's line: a name or an address, not
// an option and nothing that a shell would read. Whoever named the host: users, files, Slurm, LSF.
Status check_host_name(std::string_view name);
Status check_host_names(std::span<const HostSlots> hosts);

// Adds to the entry of the same host, or a new one at the end.
void add_host(std::vector<HostSlots>& hosts, HostSlots host);

// Every host once: one that is named twice has the slots of both.
std::vector<HostSlots> merge_hosts(std::span<const HostSlots> named);

int64_t total_slots(std::span<const HostSlots> hosts);

// Whether `host` is the machine called `own_hostname`, as far as names tell: localhost, a loopback
// address, or its own name in full or in short.
bool is_own_name(std::string_view host, std::string_view own_hostname);
bool is_loopback_name(std::string_view host);

}  // namespace hvd::launch
