#include "engine/channel/membership.h"

#include <algorithm>
#include <numeric>

#include "control/board.h"

namespace hvd::engine {
namespace {

std::vector<int> members_on_this_host(const ChannelOptions& options) {
  std::vector<int> all(options.ranks.size());
  std::iota(all.begin(), all.end(), 0);
  if (options.host_of.empty()) return all;
  const int32_t here = options.host_of[static_cast<size_t>(options.me)];
  return mirror::Members{options.ranks, options.host_of}.on_host(here);
}

std::vector<int> ranks_of(const std::vector<int>& members, const std::vector<int32_t>& ranks) {
  std::vector<int> found;
  for (const int member : members) found.push_back(ranks[static_cast<size_t>(member)]);
  return found;
}

}  // namespace

Membership::Membership(ChannelOptions options)
    : options_(std::move(options)),
      members_here_(members_on_this_host(options_)),
      ranks_here_(ranks_of(members_here_, options_.ranks)) {}

int Membership::my_place_here() const {
  return static_cast<int>(std::find(members_here_.begin(), members_here_.end(), me()) -
                          members_here_.begin());
}

// Up to here every rank combines everybody's payload itself. Between hosts each rank's payload goes
// to every host, so many ranks pay for it sooner.
uint32_t Membership::small_limit() const {
  if (size() == 2) return 8 << 10;
  if (!options_.spans_hosts()) return 32 << 10;
  const bool one_per_host =
      mirror::Members{options_.ranks, options_.host_of}.hosts().size() == options_.ranks.size();
  return one_per_host && size() <= 8 ? 4 << 10 : control::kEagerBytes / control::kRecords - 128;
}

}  // namespace hvd::engine
