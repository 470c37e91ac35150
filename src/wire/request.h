// request.h - what one rank says it wants: a value, framework-free, without buffers.
// A request has one tensor, or several when it is a group. Compared between ranks by negotiate/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace hvd::wire {

// Codes 0..7 are public (hvd_kind); the rest are internal operations of the global set.
enum class Kind : uint8_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kJoin = 3,
  kAdasum = 4,  // an allreduce whose reduce op is Adasum; set by the engine at submission
  kAlltoall = 5,
  kBarrier = 6,
  kReducescatter = 7,
  kProcessSetAdd = 8,
  kProcessSetRemove = 9,
};
inline constexpr int kKindCount = 10;
std::string_view kind_name(Kind kind);        // "ALLREDUCE": timeline and negotiation messages
std::string_view kind_lower_name(Kind kind);  // "allreduce": everything else

struct TensorSpec {
  std::string name = {};  // empty: unnamed
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape = {};
  std::vector<int32_t> splits = {};  // alltoall: explicit rows per set rank, empty: even

  uint64_t element_count() const;  // of a shape that passed validate_local
  uint64_t bytes() const { return element_count() * dtype_bytes(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

struct Request {
  Kind kind = Kind::kAllreduce;
  ReduceOp reduce_op = ReduceOp::kSum;
  int32_t wire_dtype = -1;
  int32_t root_rank = -1;  // global rank; broadcast only
  int32_t device = -1;     // -1: host
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<TensorSpec> tensors = {};
  std::vector<int32_t> ranks = {};  // process set add: the ranks; remove: {id}

  bool operator==(const Request&) const = default;
};

// "[2, 3]"
std::string shape_text(const std::vector<int64_t>& shape);
// How an operation without name is shown: "allreduce.noname.7".
std::string unnamed_text(Kind kind, uint64_t ordinal);
// The name in messages: 'a' / group ['a', 'b', ...] (n) / 'allreduce.noname.7', where 7 is
// `ordinal` / #7 for a request without tensors.
std::string display_name(const Request& request, uint64_t ordinal);

}  // namespace hvd::wire
