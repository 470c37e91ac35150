// validate.h - do the requests of all ranks fit together, and what follows from them?
// Pure. Every rank calls it with the same requests and gets the same answer, so an error reaches
// everybody and nobody needs a coordinator. Messages follow spec order and name ranks and both
// values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "wire/request.h"

namespace hvd::negotiate {

// Sizes that follow from all requests together, per tensor of the request.
struct TensorPlan {
  // allgather: first dimension of each set rank. reducescatter: rows each set rank receives.
  std::vector<int64_t> rows;
  // alltoall: splits[from * size + to] in rows.
  std::vector<int32_t> splits;
  uint64_t row_elements = 0;  // elements of one row (product of dimensions 1..)
};

struct Plan {
  std::vector<TensorPlan> tensors;
};

struct ValidateInput {
  // One per set rank, in set-rank order; nullptr: that rank has joined.
  std::span<const wire::Request* const> requests;
  std::span<const int32_t> global_ranks;  // set rank -> global rank
  uint64_t ordinal = 0;                   // for the display name of unnamed requests
};

// What one rank can check alone, before anything is sent: INVALID_ARGUMENT (or ABORTED for a
// reducescatter op other than Average and Sum) as the table "errors at enqueue" of the semantics
// says. `global_ranks` is the process set (empty: skip membership checks).
Status validate_local(const wire::Request& request, std::span<const int32_t> global_ranks);

// Requests have passed validate_local on their rank; joined ranks are nullptr. PRECONDITION on
// mismatch. Messages: "<kind> '<name>': Mismatched data types: rank 0 sent float32, rank 3 sent
// float16".
Result<Plan> validate(const ValidateInput& input);

}  // namespace hvd::negotiate
