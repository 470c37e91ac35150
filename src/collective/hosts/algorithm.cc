#include "collective/hosts/algorithm.h"

#include <algorithm>

namespace hvd::collective::hosts {
namespace {

// Up to here a second message delay costs more than the bytes it saves.
constexpr uint64_t kOneShotBytes = 16 << 10;  // sent by one host to all others
// Direct exchange needs streams to all hosts, and many senders meet at one receiver.
constexpr int kMostDirectHosts = 8;
// Below this a part of a ring is so small that its 2 (hosts - 1) delays dominate.
constexpr uint64_t kLeastRingPartBytes = 8 << 10;
// Small enough that what is received is combined from the cache.
constexpr size_t kMostBlockBytes = 1 << 20;

}  // namespace

bool goes_by_ring(const WorkSize& work, int host_count) {
  return host_count > kMostDirectHosts && !work.has_short_floats &&
         work.bytes / static_cast<uint64_t>(host_count) >= kLeastRingPartBytes;
}

WorkSize size_of(const Work& work) {
  WorkSize size;
  for (size_t r = 0; r < work.run_count; ++r) {
    const DType dtype = work.runs[r].numeric.slot_dtype;
    size.bytes += work.runs[r].count * dtype_bytes(dtype);
    size.has_short_floats |= dtype == DType::kFloat16 || dtype == DType::kBfloat16;
  }
  return size;
}

Algorithm choose_algorithm(uint64_t block_bytes, int host_count, uint64_t one_shot_bytes) {
  const auto others = static_cast<uint64_t>(host_count - 1);
  return block_bytes * others <= one_shot_bytes ? Algorithm::kOneShot : Algorithm::kDirect;
}

uint64_t one_shot_bytes_for(const Cut& cut) {
  return cut.one_shot_bytes > 0 ? cut.one_shot_bytes : kOneShotBytes;
}

size_t block_bytes_for(int host_count, size_t part_bytes) {
  return std::min(kMostBlockBytes, part_bytes * static_cast<size_t>(host_count));
}

}  // namespace hvd::collective::hosts
