// bare_group.h - the collective layer alone: blocking allreduce among the ranks of one host,
// without names, negotiation or engine. For benchmarks that compare it with bare MPI calls, and for
// tests. Every rank must call the same functions in the same order. One thread per group.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace hvd::collective::shared_memory {

class BareGroup {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string job_id;  // the same on all ranks, unique on this host
  };
  // Blocks until all ranks have come (30 s at most).
  static Result<std::unique_ptr<BareGroup>> join(const Options& options);
  virtual ~BareGroup() = default;

  // In place; picks the algorithm by size. Also finds out by itself that `data` lies in a shared
  // buffer on every rank (a buffer of alloc) and then reduces it where it lies.
  virtual Status allreduce(void* data, size_t count, DType dtype, ReduceOp op) = 0;
  virtual Result<void*> alloc(size_t bytes) = 0;  // shared memory; freed with the group
  virtual Status barrier() = 0;
  // Round trip of a cache line between ranks 0 and 1 in ns (best of 3); 0 for other ranks.
  // Collective.
  virtual double probe_round_trip_ns() = 0;
};

}  // namespace hvd::collective::shared_memory
