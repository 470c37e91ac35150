// nccl_calls.h - a work as calls of NCCL. Pure; any thread. What NCCL cannot do in one pass
// (Adasum, wire types, dtypes it lacks, factors of integers) is not a list of calls: launch_plan.h
// puts our kernels around it, else it goes through host memory. Only agreed values decide.
#pragma once

#include <optional>
#include <vector>

#include "collective/work.h"

namespace hvd::collective::gpu {

struct Reduction {
  enum class Op : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };
  int dtype = 0;  // as NCCL counts them
  Op op = Op::kSum;
  double factor = 1.0;  // of every input, before the sum

  friend bool operator==(const Reduction&, const Reduction&) = default;
};
// Nothing: NCCL has no such reduction.
std::optional<Reduction> reduction_of(const Numeric& numeric, int size);
// The same without its factor, for our own collectives. Not of an average.
Numeric plain_numeric(const Reduction& reduction);

enum class CallKind {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kSend,
  kReceive
};
struct Call {
  CallKind kind = CallKind::kAllReduce;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  uint64_t count = 0;  // of elements, or bytes of what is only moved; gather, scatter: per member
  Reduction reduction{};
  int peer = 0;  // root, or the other end
};

bool can_run(const Work& work, int size);
// `me` is this member's place. Only where can_run().
std::vector<Call> calls_of(const Work& work, int size, int me);

// The input of an exchange is overwritten before it is sent, unless it is copied.
bool must_copy_input(const Exchange& exchange, int me);
uint64_t input_bytes(const Exchange& exchange);
uint64_t output_bytes(const Exchange& exchange);

}  // namespace hvd::collective::gpu
