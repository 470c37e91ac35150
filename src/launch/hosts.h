// hosts.h - the -H list: which machines, how many workers on each. Pure; any thread.
// This version starts workers on one machine; the list form is that of many.
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

// "h1:2,h2:4"
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// Fails if one of them is not this machine, or if there are fewer slots than workers.
Status check_one_host(std::span<const HostSlots> hosts, std::string_view own_hostname,
                      int32_t num_proc);

}  // namespace hvd::launch
