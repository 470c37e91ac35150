#include "collective/hosts/two_level.h"

#include "shm/job_layout.h"

namespace hvd::collective::hosts {

TwoLevel TwoLevel::of(const Numeric& n, const HostLayout& layout, HostOrder order) {
  TwoLevel result;
  result.is_mean_of_means = n.is_mean() && (order == HostOrder::kAtOnce || layout.is_even());
  result.between = {n.slot_dtype, n.slot_dtype, n.op, Scale{}, n.post};
  if (result.is_mean_of_means) result.between.post.divisor = layout.total_weight;
  return result;
}

void combine_between(const HostLayout& layout, const Numeric& between, const Combine& args) {
  if (layout.is_even() || !between.is_mean()) return combine(between, args);
  const std::byte* slots[shm::kMaxRanks];
  Combine weighted = args;
  weighted.slots = slots;
  weighted.rank_count = 0;
  for (unsigned host = 0; host < args.rank_count; ++host) {
    if (host == args.own) weighted.own = weighted.rank_count;
    for (int time = 0; time < layout.weights[host]; ++time)
      slots[weighted.rank_count++] = host == args.own ? args.in : args.slots[host];
  }
  combine(between, weighted);
}

}  // namespace hvd::collective::hosts
