#include "launch/hosts.h"

#include <algorithm>

#include "base/parse.h"
#include "base/text.h"
#include "launch/options.h"

namespace hvd::launch {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

Result<HostSlots> parse_host(std::string_view item) {
  const size_t colon = item.find(':');
  const std::string_view host = item.substr(0, colon);
  if (colon == std::string_view::npos || host.empty() ||
      !std::all_of(host.begin(), host.end(), is_host_character)) {
    return invalid_argument(concat("-H: expected host:slots, got '", item, "'"));
  }
  const auto slots = parse_integer(item.substr(colon + 1), {1, kMaxWorkers});
  if (!slots) return blame(concat("-H ", host), slots.status());
  return HostSlots{std::string(host), static_cast<int32_t>(*slots)};
}

bool is_this_machine(std::string_view host, std::string_view own_hostname) {
  if (host == "localhost" || host == "127.0.0.1" || host == own_hostname) return true;
  // The short form of a full name is the same machine: "node7" and "node7.cluster".
  const std::string_view own_short = own_hostname.substr(0, own_hostname.find('.'));
  return host == own_short ||
         (own_hostname == own_short && host.starts_with(concat(own_short, ".")));
}

}  // namespace

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  while (true) {
    const size_t comma = text.find(',');
    HVD_TRY_ASSIGN(HostSlots host, parse_host(text.substr(0, comma)));
    hosts.push_back(std::move(host));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Status check_one_host(std::span<const HostSlots> hosts, std::string_view own_hostname,
                      int32_t num_proc) {
  int64_t slots = 0;
  for (const HostSlots& entry : hosts) {
    if (!is_this_machine(entry.host, own_hostname)) {
      return invalid_argument(concat("-H ", entry.host, ":", entry.slots,
                                     ": this version runs on one host, and that is '", own_hostname,
                                     "'"));
    }
    slots += entry.slots;
  }
  if (slots < num_proc) {
    return invalid_argument(
        concat("-np ", num_proc, " asks for more workers than -H has slots (", slots, ")"));
  }
  return Status::ok();
}

}  // namespace hvd::launch
