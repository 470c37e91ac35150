#include "mpi/placement.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "net/keys/key.h"

namespace hvd::mpi {
namespace {

Result<std::string> random_id() {
  uint8_t bytes[8] = {};
  HVD_TRY(net::fill_random(bytes));
  std::string out = "mpi-";
  for (const uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

topology::Topology placed_on(std::span<const std::string> hosts, int32_t rank) {
  topology::Topology out;
  out.rank = rank;
  out.size = static_cast<int32_t>(hosts.size());
  const std::string& mine = hosts[static_cast<size_t>(rank)];
  std::map<std::string_view, int32_t> counts;
  std::vector<std::string_view> order;  // hosts by their lowest rank
  for (int32_t other = 0; other < out.size; ++other) {
    const std::string& host = hosts[static_cast<size_t>(other)];
    if (counts[host]++ == 0) order.push_back(host);
    if (host == mine && other < rank) ++out.local_rank;
  }
  out.local_size = counts[mine];
  // Among the hosts that have a rank with this local rank.
  out.cross_size = 0;
  for (const std::string_view host : order) {
    if (host == mine) out.cross_rank = out.cross_size;
    if (counts[host] > out.local_rank) ++out.cross_size;
  }
  return out;
}

Result<topology::Topology> find_placement(const Place& self, store::Store& store, uint64_t epoch,
                                          Deadline deadline) {
  const std::string prefix = concat("horovod/", epoch, "/place/");
  HVD_TRY(store.set(concat(prefix, self.rank), self.host, deadline));
  if (self.rank == 0) {
    // The id, then one host per line: all of it is hexadecimal digits.
    HVD_TRY_ASSIGN(std::string all, random_id());
    for (int32_t rank = 0; rank < self.size; ++rank) {
      auto host = store.get(concat(prefix, rank), deadline);
      if (!host) {
        return Status(host.status().code(),
                      concat("init: rank ", rank, " of ", self.size,
                             " did not say where it runs: ", host.status().message()));
      }
      all += "\n" + *host;
    }
    HVD_TRY(store.set(prefix + "all", all, deadline));
  }
  HVD_TRY_ASSIGN(const std::string all, store.get(prefix + "all", deadline));
  const std::vector<std::string> lines = lines_of(all);
  if (lines.size() != static_cast<size_t>(self.size) + 1) {
    return corrupted(
        concat("init: rank 0 sent the hosts of ", lines.size(), " ranks, expected ", self.size));
  }
  topology::Topology topology = placed_on(std::span(lines).subspan(1), self.rank);
  topology.hostname = self.hostname;
  topology.job_id = lines.front();
  return topology;
}

}  // namespace hvd::mpi
