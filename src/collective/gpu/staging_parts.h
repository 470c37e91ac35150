// staging_parts.h - how a work in device memory is cut into works in host memory: what is copied
// where before and after each. Pure; any thread. Cuts depend on agreed sizes alone.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/work.h"

namespace hvd::collective::gpu {

// Reductions are cut, so that copies and sums of neighbours overlap; the rest is one part.
inline constexpr uint64_t kPartBytes = 2 << 20;

struct Transfer {
  std::byte* device = nullptr;
  uint64_t offset = 0;  // in the part's host memory
  uint64_t bytes = 0;
};

struct Part {
  uint64_t bytes = 0;  // host memory that it needs
  std::vector<Transfer> in, out;
};

uint64_t part_count(const Work& work);
// Host memory that the largest part needs.
uint64_t largest_part(const Work& work);
// Fills `part`, and in `host` the work that runs in `memory`. memory null: only sizes.
void make_part(const Work& work, uint64_t index, std::byte* memory, Part& part, Work& host);

}  // namespace hvd::collective::gpu
