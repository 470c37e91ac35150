// host_reduce.h - the level between hosts: reduces a sequence of blocks among the members of one
// lane, one on each host. A block is a range of a run; its elements leave this member's memory as
// they are where the run is plain, and pass through scratch otherwise. Contributions are combined
// in host order; all hosts get the same bits. Never blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "collective/hosts/algorithm.h"
#include "collective/hosts/host_link.h"
#include "collective/hosts/pace.h"
#include "collective/task.h"

namespace hvd::collective::hosts {

struct Block {
  const Run* run = nullptr;       // lives until the block is finished
  uint64_t first = 0, count = 0;  // elements
};

struct BlockSequence {
  uint64_t block_count = 0;
  size_t largest_bytes = 0;  // of a block, as it travels
  WorkSize work;             // decides on the algorithm
  PaceShape pace = shape_of(Pace::kLockstep);
  uint64_t one_shot_bytes = one_shot_bytes_for({});
};

class HostReduce {
 public:
  virtual ~HostReduce() = default;
  virtual bool can_start() const = 0;
  // The next block of the sequence. Only if can_start().
  virtual void start(const Block& block) HVD_REQUIRES(engine_role) = 0;
  // Moves bytes and combines what has come. True if anything happened.
  virtual bool advance() HVD_REQUIRES(engine_role) = 0;
  // Blocks whose outputs hold the result, in the order they were started.
  virtual uint64_t finished() const = 0;
};

// Uses hosts.scratch(). Call hosts.begin_work() first.
std::unique_ptr<HostReduce> make_host_reduce(HostLink& hosts, const BlockSequence& sequence);
std::unique_ptr<HostReduce> make_direct_reduce(HostLink& hosts, const BlockSequence& sequence);
std::unique_ptr<HostReduce> make_ring_reduce(HostLink& hosts, const BlockSequence& sequence);

// Allreduce where every host has one member: blocks go from the user's memory to the network and
// back.
struct FlatWay {
  PaceShape pace;
  size_t block_bytes = 0;
  std::unique_ptr<HostReduce> (*make)(HostLink& hosts, const BlockSequence& sequence) = nullptr;
};
std::unique_ptr<Task> make_flat_reduce(HostLink& hosts, const Work& work, const FlatWay& way);

}  // namespace hvd::collective::hosts
