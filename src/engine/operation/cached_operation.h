// cached_operation.h - an entry of the response cache as the engine uses it: what all ranks agreed
// on (negotiate::Slot), and what follows from it for running it here. The second part is worked out
// once, when the operation is agreed for the first time (channel/small_operations.h), and never
// changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/numeric.h"
#include "negotiate/slot_table.h"

namespace hvd::engine {

struct CachedOperation : negotiate::Slot {
  // Everybody deposits. The limit is the channel's, and may change from one operation to the next:
  // an entry that remembered the answer would have to be found again wherever it is still known.
  bool is_small(uint32_t limit) const { return small_from <= limit; }

  uint32_t small_from = 0;     // it is small where payloads of so many bytes are; see is_small()
  bool may_share = false;      // reduced in place when all buffers lie in shared memory
  uint32_t deposit_bytes = 0;  // of this rank
  std::vector<uint32_t> deposit_of;  // per rank
  uint64_t total_bytes = 0;          // what this rank moves; statistics
  bool is_plain = false;             // allreduce of one tensor, neither wire type nor pre-scaling
  uint64_t plain_count = 0;
  collective::Numeric plain_numeric;
};

// Second owners: prepared submissions, operations in flight.
using CachedPtr = std::shared_ptr<CachedOperation>;

}  // namespace hvd::engine
