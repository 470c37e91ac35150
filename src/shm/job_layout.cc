#include "shm/job_layout.h"

#include <algorithm>

#include "shm/meeting_table.h"

namespace hvd::shm {

JobShape job_shape(int size, int here, uint64_t arena_bytes) {
  const uint64_t ranks = static_cast<uint64_t>(size);
  JobShape shape{};
  shape.meetings_offset =
      align_up(align_up(sizeof(JobHeader), kPageBytes) + ranks * sizeof(RankBlock), kPageBytes);
  shape.channel_pool_offset = align_up(shape.meetings_offset + sizeof(MeetingBoard), kPageBytes);
  // Address space, not memory: a channel touches only what it uses. Room for the global set, as
  // many pair sets as there are ranks, and then some.
  const uint64_t dense = std::min<uint64_t>(ranks, kMaxRanksPerHost);
  shape.channel_pool_bytes = (dense * dense + 16 * ranks + 64) * (uint64_t{8} << 20);
  shape.met_pool_offset = shape.channel_pool_offset + shape.channel_pool_bytes;
  shape.met_pool_bytes = shape.channel_pool_bytes;
  shape.arena_offset = align_up(shape.met_pool_offset + shape.met_pool_bytes, uint64_t{2} << 20);
  // An odd number of pages between the arenas, so that equal offsets never lie 2^28 bytes apart.
  shape.arena_bytes = align_up(arena_bytes, kPageBytes) + 7 * kPageBytes;
  shape.total_bytes = shape.arena_offset + static_cast<uint64_t>(here) * shape.arena_bytes;
  return shape;
}

}  // namespace hvd::shm
