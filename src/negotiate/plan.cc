#include "negotiate/plan.h"

#include "negotiate/rules.h"

namespace hvd::negotiate {
namespace {

using wire::Kind;
using wire::Request;
using Requests = std::span<const Request* const>;

uint64_t elements_of_a_row(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (size_t d = 1; d < shape.size(); ++d) count *= static_cast<uint64_t>(shape[d]);
  return count;
}

std::vector<int64_t> gathered_rows(Requests requests, size_t tensor) {
  std::vector<int64_t> rows;
  rows.reserve(requests.size());
  for (const Request* request : requests) rows.push_back(request->tensors[tensor].shape[0]);
  return rows;
}

// The first `total % size` ranks get one row more than the others.
std::vector<int64_t> scattered_rows(int64_t total, size_t size) {
  const int64_t count = static_cast<int64_t>(size);
  std::vector<int64_t> rows(size, total / count);
  for (int64_t r = 0; r < total % count; ++r) ++rows[static_cast<size_t>(r)];
  return rows;
}

std::vector<int32_t> exchanged_splits(Requests requests, size_t tensor) {
  std::vector<int32_t> splits;
  splits.reserve(requests.size() * requests.size());
  for (const Request* request : requests) {
    append_splits(request->tensors[tensor], requests.size(), splits);
  }
  return splits;
}

}  // namespace

Plan make_plan(const Request& first, Requests requests) {
  Plan plan;
  plan.tensors.resize(first.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const std::vector<int64_t>& shape = first.tensors[i].shape;
    TensorPlan& tensor = plan.tensors[i];
    tensor.row_elements = elements_of_a_row(shape);
    if (first.kind == Kind::kAllgather) tensor.rows = gathered_rows(requests, i);
    if (first.kind == Kind::kReducescatter) tensor.rows = scattered_rows(shape[0], requests.size());
    if (first.kind == Kind::kAlltoall) tensor.splits = exchanged_splits(requests, i);
  }
  return plan;
}

}  // namespace hvd::negotiate
