#include "launch/elastic/placement.h"

#include <algorithm>
#include <climits>
#include <map>

namespace hvd::launch {
namespace {

int32_t order_of(const Candidate& candidate) {
  return candidate.last_rank < 0 ? INT32_MAX : candidate.last_rank;
}

bool comes_first(const Candidate& a, const Candidate& b) {
  if (order_of(a) != order_of(b)) return order_of(a) < order_of(b);
  return a.worker < b.worker;
}

// Hosts in the order of their first worker, each with its workers in order.
std::vector<std::vector<Candidate>> by_host(std::span<const Candidate> candidates) {
  std::vector<Candidate> sorted(candidates.begin(), candidates.end());
  std::sort(sorted.begin(), sorted.end(), comes_first);
  std::vector<std::vector<Candidate>> hosts;
  std::map<std::string, size_t> index;
  for (Candidate& candidate : sorted) {
    const auto [entry, is_new] = index.try_emplace(candidate.host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[entry->second].push_back(std::move(candidate));
  }
  return hosts;
}

}  // namespace

std::vector<Placed> place_workers(std::span<const Candidate> candidates, uint64_t epoch) {
  const auto hosts = by_host(candidates);
  std::vector<Placed> placed;
  std::vector<int32_t> hosts_with;  // by local rank: how many hosts have it
  for (const std::vector<Candidate>& host : hosts) {
    for (size_t local = 0; local < host.size(); ++local) {
      if (local == hosts_with.size()) hosts_with.push_back(0);
      placed.push_back({.worker = host[local].worker,
                        .place = {.epoch = epoch,
                                  .rank = static_cast<int32_t>(placed.size()),
                                  .size = static_cast<int32_t>(candidates.size()),
                                  .local_rank = static_cast<int32_t>(local),
                                  .local_size = static_cast<int32_t>(host.size()),
                                  .cross_rank = hosts_with[local]++,
                                  .cross_size = 0}});
    }
  }
  for (Placed& one : placed) {
    one.place.cross_size = hosts_with[static_cast<size_t>(one.place.local_rank)];
  }
  return placed;
}

}  // namespace hvd::launch
