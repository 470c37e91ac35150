// requests.h - requests for the tests of negotiate/, and what all ranks make of them.
#pragma once

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "negotiate/validate.h"

namespace hvd::test {

using wire::Kind;
using wire::Request;
using wire::TensorSpec;

inline Request tensors_of(Kind kind, std::vector<TensorSpec> tensors) {
  Request request;
  request.kind = kind;
  if (kind == Kind::kAdasum) request.reduce_op = ReduceOp::kAdasum;
  if (kind == Kind::kBroadcast) request.root_rank = 0;
  request.tensors = std::move(tensors);
  return request;
}
inline Request request_of(Kind kind, std::vector<int64_t> shape, DType dtype = DType::kFloat32) {
  return tensors_of(kind, {TensorSpec{.name = "x", .dtype = dtype, .shape = std::move(shape)}});
}
inline Request alltoall(std::vector<int64_t> shape, std::vector<int32_t> splits) {
  return tensors_of(Kind::kAlltoall, {TensorSpec{.name = "x",
                                                 .dtype = DType::kFloat32,
                                                 .shape = std::move(shape),
                                                 .splits = std::move(splits)}});
}
inline Request with_ranks(Kind kind, std::vector<int32_t> ranks) {
  Request request;
  request.kind = kind;
  request.ranks = std::move(ranks);
  return request;
}

template <typename Change>
Request changed(Request request, Change change) {
  change(request);
  return request;
}

inline const std::optional<Request> kJoined = std::nullopt;

// One entry per set rank. Global ranks are 10, 11, ... so that a test sees which ranks a message
// names.
inline Result<negotiate::Plan> validate_all(const std::vector<std::optional<Request>>& requests,
                                            uint64_t ordinal = 0) {
  std::vector<const Request*> pointers;
  for (const auto& request : requests) pointers.push_back(request ? &*request : nullptr);
  std::vector<int32_t> global_ranks(requests.size());
  std::iota(global_ranks.begin(), global_ranks.end(), 10);
  return negotiate::validate(
      {.requests = pointers, .global_ranks = global_ranks, .ordinal = ordinal});
}

}  // namespace hvd::test
