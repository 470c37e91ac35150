// lane_reduce.h - an allreduce that the library below a mesh offers (MPI), among this rank and
// those of the same place on the other hosts. All of them start the same ones in the same order.
// Never blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/status.h"

namespace hvd::net {

class LaneReduce {
 public:
  virtual ~LaneReduce() = default;
  // The same answer on all ranks.
  virtual bool can_reduce(DType dtype, ReduceOp op) const = 0;
  // in == out: in place. The memory stays until it is done. Gives a number to ask by.
  virtual Result<uint64_t> start(const void* in, void* out, size_t count, DType dtype,
                                 ReduceOp op) = 0;
  // Asked in the order of the numbers, for each until it is true.
  virtual Result<bool> is_done(uint64_t number) = 0;
};

}  // namespace hvd::net
