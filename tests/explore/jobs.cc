#include "tests/explore/jobs.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "base/hash.h"
#include "collective/shared_memory/link.h"
#include "control/board.h"
#include "engine/channel/channel.h"
#include "tests/support/deal_out.h"

namespace hvd::explore {
namespace {

constexpr uint32_t kSets = 2;

JobSet make_jobs(int ranks, int hosts) {
  JobSet set;
  set.hosts = testing::deal_out(ranks, hosts);
  for (size_t host = 0; host < set.hosts.ranks_of.size(); ++host) {
    shm::JobOptions options;
    options.hostname = set.hosts.names[host];
    options.arena_bytes = 16 << 20;
    options.here.assign(set.hosts.ranks_of[host].begin(), set.hosts.ranks_of[host].end());
    auto jobs = shm::Job::in_process(ranks, options);
    if (!jobs) std::abort();
    for (auto& job : *jobs) set.jobs.push_back(std::move(job));
  }
  return set;
}

const shm::Job& first_of(const JobSet& set, size_t host) {
  return *set.jobs[static_cast<size_t>(set.hosts.ranks_of[host][0])];
}

// Everything that another run may have written and a channel expects to be zero.
void put_back(const shm::Job& job, int ranks) {
  job.header().parked.store(0);
  job.header().failure.state.store(0);
  for (int rank = 0; rank < ranks; ++rank) {
    shm::RankBlock& block = job.block(rank);
    for (auto* word : {&block.role, &block.park, &block.background, &block.flight_next})
      word->store(0);
    block.want.store(0);
  }
  for (uint32_t id = 0; id < kSets; ++id) clear_region(job, id);
}

}  // namespace

std::byte* channel_region(const shm::Job& job, uint32_t id) {
  const uint64_t bytes = align_up(engine::Channel::region_bytes(job.size()), 4096);
  return job.base() + job.channel_pool_offset() + id * bytes;
}

void clear_region(const shm::Job& job, uint32_t id) {
  std::byte* region = channel_region(job, id);
  const size_t board_bytes = control::Board::region_bytes(job.size());
  std::memset(region, 0, board_bytes);
  const size_t flag_bytes = static_cast<size_t>(2 * job.size()) * kLineSpacing;
  std::memset(region + align_up(board_bytes, 4096), 0, flag_bytes);  // see Link
}

JobSet& jobs_for(const Program& program) {
  static std::map<std::pair<int, int>, JobSet> sets;
  const std::pair key(program.ranks, program.hosts);
  auto found = sets.find(key);
  if (found == sets.end()) found = sets.emplace(key, make_jobs(program.ranks, program.hosts)).first;
  for (size_t host = 0; host < found->second.hosts.ranks_of.size(); ++host)
    put_back(first_of(found->second, host), program.ranks);
  return found->second;
}

uint64_t JobSet::shared_digest() const {
  uint64_t digest = 0;
  for (size_t host = 0; host < hosts.ranks_of.size(); ++host) {
    const shm::Job& job = first_of(*this, host);
    for (uint32_t id = 0; id < kSets; ++id) {
      std::byte* region = channel_region(job, id);
      const control::Board board(region, job.size());
      const auto bytes = static_cast<size_t>(board.eager(0) - region);
      digest = hash_bytes({reinterpret_cast<const char*>(region), bytes}, digest);
      const std::byte* flags = region + align_up(control::Board::region_bytes(job.size()), 4096);
      const auto flag_bytes = static_cast<size_t>(2 * job.size()) * kLineSpacing;
      digest = hash_bytes({reinterpret_cast<const char*>(flags), flag_bytes}, digest);
    }
  }
  return digest;
}

}  // namespace hvd::explore
