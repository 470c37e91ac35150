#include "engine/operation/submission.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/hash.h"

namespace hvd::engine {

wire::Request make_request(const Submission& s) {
  wire::Request request;
  request.kind = s.kind;
  request.reduce_op = s.reduce_op;
  request.wire_dtype = s.wire_dtype;
  request.root_rank = s.root_rank;
  request.device = s.device;
  request.prescale = s.prescale;
  request.postscale = s.postscale;
  request.ranks.assign(s.ranks.begin(), s.ranks.end());
  request.tensors.reserve(s.tensors.size());
  for (const TensorArg& tensor : s.tensors) {
    request.tensors.push_back({std::string(tensor.name),
                               tensor.dtype,
                               {tensor.shape.begin(), tensor.shape.end()},
                               {tensor.splits.begin(), tensor.splits.end()}});
  }
  return request;
}

namespace {

template <typename T>
bool same_items(std::span<const T> a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool same_tensor(const TensorArg& tensor, const wire::TensorSpec& spec) {
  return tensor.dtype == spec.dtype && same_items(tensor.shape, spec.shape) &&
         same_items(tensor.splits, spec.splits) && tensor.name == spec.name;
}

}  // namespace

bool says_the_same(const Submission& s, const wire::Request& r) {
  if (s.kind != r.kind || s.reduce_op != r.reduce_op || s.wire_dtype != r.wire_dtype ||
      s.root_rank != r.root_rank || s.device != r.device || s.prescale != r.prescale ||
      s.postscale != r.postscale || s.tensors.size() != r.tensors.size() ||
      !same_items(s.ranks, r.ranks)) {
    return false;
  }
  for (size_t i = 0; i < r.tensors.size(); ++i) {
    if (!same_tensor(s.tensors[i], r.tensors[i])) return false;
  }
  return true;
}

namespace {

// Submission and Request have the same members under the same names; tensors too.
template <typename T>
uint64_t hash_signature(const T& s) {
  uint64_t hash =
      mix(static_cast<uint64_t>(s.kind) << 8 | static_cast<uint64_t>(s.reduce_op),
          static_cast<uint64_t>(s.wire_dtype + 2) << 32 | static_cast<uint32_t>(s.root_rank));
  hash = mix(hash, std::bit_cast<uint64_t>(s.prescale));
  hash = mix(hash, std::bit_cast<uint64_t>(s.postscale));
  for (const auto& tensor : s.tensors) {
    hash = mix(hash, static_cast<uint64_t>(tensor.dtype) << 32 | tensor.shape.size());
    for (const int64_t dim : tensor.shape) hash = mix(hash, static_cast<uint64_t>(dim));
    for (const int32_t rows : tensor.splits) hash = mix(hash, static_cast<uint32_t>(rows) + 1ull);
  }
  return hash;
}

}  // namespace

uint64_t signature_hash(const Submission& submission) { return hash_signature(submission); }
uint64_t signature_hash(const wire::Request& request) { return hash_signature(request); }

}  // namespace hvd::engine
