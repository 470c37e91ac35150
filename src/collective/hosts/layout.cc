#include "collective/hosts/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hvd::collective::hosts {

HostLayout HostLayout::of(const std::vector<int>& labels) {
  HostLayout layout;
  std::map<int, int> hosts;
  for (size_t member = 0; member < labels.size(); ++member) {
    const auto [entry, is_new] = hosts.try_emplace(labels[member], layout.host_count());
    if (is_new) layout.members.emplace_back();
    std::vector<int>& there = layout.members[static_cast<size_t>(entry->second)];
    layout.host_of.push_back(entry->second);
    layout.place_of.push_back(static_cast<int>(there.size()));
    there.push_back(static_cast<int>(member));
  }
  size_t smallest = labels.size(), divisor = 0;
  for (const auto& there : layout.members) {
    smallest = std::min(smallest, there.size());
    divisor = std::gcd(divisor, there.size());
  }
  layout.lanes = static_cast<int>(smallest);
  for (const auto& there : layout.members)
    layout.weights.push_back(static_cast<int>(there.size() / divisor));
  layout.total_weight = static_cast<int>(labels.size() / divisor);
  return layout;
}

}  // namespace hvd::collective::hosts
