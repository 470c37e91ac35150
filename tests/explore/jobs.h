// jobs.h - the shared segments that explored jobs run in: made once per number of ranks and hosts,
// put back to zero for each run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shm/job.h"
#include "tests/explore/program.h"
#include "topology/hosts.h"

namespace hvd::explore {

struct JobSet {
  topology::HostMap hosts;
  std::vector<std::unique_ptr<shm::Job>> jobs;  // per rank

  // Of the words that ranks share; payloads left out.
  uint64_t shared_digest() const;
};

// As new. The set belongs to this module; one run uses it at a time.
JobSet& jobs_for(const Program& program);
// Where process set `id` (0 or 1) lies in the segment of a rank's host.
std::byte* channel_region(const shm::Job& job, uint32_t id);
// What a channel expects to be zero there.
void clear_region(const shm::Job& job, uint32_t id);

}  // namespace hvd::explore
