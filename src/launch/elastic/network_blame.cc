#include "launch/elastic/network_blame.h"

#include <map>
#include <set>
#include <tuple>

namespace hvd::launch {

std::optional<std::string> host_to_blame(std::span<const Unreached> complaints,
                                         std::span<const Standing> hosts) {
  std::map<std::string, std::set<std::string>> lacks;
  for (const Unreached& complaint : complaints) {
    if (complaint.from == complaint.to) continue;
    lacks[complaint.from].insert(complaint.to);
    if (!complaint.to.empty()) lacks[complaint.to].insert(complaint.from);
  }
  const Standing* worst = nullptr;
  const auto badness = [&lacks](const Standing& one) {
    return std::tuple(lacks[one.host].size(), !one.has_state, one.first_rank);
  };
  for (const Standing& host : hosts) {
    if (lacks[host.host].empty()) continue;
    if (worst == nullptr || badness(host) > badness(*worst)) worst = &host;
  }
  return worst == nullptr ? std::nullopt : std::optional(worst->host);
}

}  // namespace hvd::launch
