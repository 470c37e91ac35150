// algorithm.h - how a shard is reduced between hosts, chosen from what all members know. Words: a
// block is what is reduced in one go; a part is the share of a block that one host combines.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/work.h"

namespace hvd::collective::hosts {

enum class Algorithm {
  kOneShot,  // everybody sends the whole block to everybody: one message delay
  kDirect,   // each host gets its part from all, combines it once, sends the result to all
};
// The ring: parts travel around; two neighbours instead of streams to all hosts.

// What all members know of a work, as it travels.
struct WorkSize {
  uint64_t bytes = 0;
  bool has_short_floats = false;  // float16, bfloat16: a ring would round them at every host
};

// All blocks of a work go by the ring, or none.
bool goes_by_ring(const WorkSize& work, int host_count);
// One shot or direct, where it does not.
// `one_shot_bytes`: sent by one host to all others.
Algorithm choose_algorithm(uint64_t block_bytes, int host_count, uint64_t one_shot_bytes);
uint64_t one_shot_bytes_for(const Cut& cut);

// Of all runs of a work.
WorkSize size_of(const Work& work);

// Bytes of a block where hosts have one member each.
size_t block_bytes_for(int host_count, size_t part_bytes);

}  // namespace hvd::collective::hosts
