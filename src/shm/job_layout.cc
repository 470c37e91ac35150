#include "shm/job_layout.h"

#include <algorithm>

#include "shm/meeting_table.h"

namespace hvd::shm {

JobShape job_shape(int size, int here, uint64_t arena_bytes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t ranks = static_cast<uint64_t>(size);
  JobShape shape{};
  shape.meetings_offset =
      align_up(align_up(sizeof(JobHeader), kPage) + ranks * sizeof(RankBlock), kPage);
  shape.channel_pool_offset = align_up(shape.meetings_offset + sizeof(MeetingBoard), kPage);
  // Address space, not memory: a channel touches only what it uses. Room for the global set, as
  // many pair sets as there are ranks, and then some.
  const uint64_t dense = std::min<uint64_t>(ranks, kMaxRanksPerHost);
  shape.channel_pool_bytes = (dense * dense + 16 * ranks + 64) * (uint64_t{8} << 20);
  shape.met_pool_offset = shape.channel_pool_offset + shape.channel_pool_bytes;
  shape.met_pool_bytes = shape.channel_pool_bytes;
  shape.arena_offset = align_up(shape.met_pool_offset + shape.met_pool_bytes, uint64_t{2} << 20);
  // An odd number of pages between the arenas, so that equal offsets never lie 2^28 bytes apart.
  shape.arena_bytes = align_up(arena_bytes, kPage) + 7 * kPage;
  shape.total_bytes = shape.arena_offset + static_cast<uint64_t>(here) * shape.arena_bytes;
  return shape;
}

}  // namespace hvd::shm
