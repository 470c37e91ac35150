// random_request.h - requests of every form for property tests. Same seed, same requests.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "wire/request.h"

namespace hvd::test {

class RandomRequests {
 public:
  explicit RandomRequests(uint32_t seed) : random_(seed) {}

  wire::Request next() {
    wire::Request request;
    request.kind = static_cast<wire::Kind>(below(wire::kKindCount));
    request.reduce_op = static_cast<ReduceOp>(below(kReduceOpCount));
    request.wire_dtype = static_cast<int32_t>(below(kDTypeCount + 1)) - 1;
    request.root_rank = static_cast<int32_t>(random_());
    request.device = static_cast<int32_t>(below(9)) - 1;
    request.prescale = std::ldexp(static_cast<double>(random_()), -17);
    request.postscale = -1.0 / (1.0 + static_cast<double>(random_()));
    request.tensors.resize(below(4));
    for (wire::TensorSpec& tensor : request.tensors) fill(tensor);
    request.ranks.resize(below(5));
    for (int32_t& rank : request.ranks) rank = static_cast<int32_t>(random_());
    return request;
  }

 private:
  uint32_t below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }

  void fill(wire::TensorSpec& tensor) {
    tensor.name.resize(below(40));
    for (char& c : tensor.name) c = static_cast<char>(below(256));
    tensor.dtype = static_cast<DType>(below(kDTypeCount));
    tensor.shape.resize(below(5));
    for (int64_t& dimension : tensor.shape) {
      dimension = static_cast<int64_t>((static_cast<uint64_t>(random_()) << 32) | random_());
    }
    tensor.splits.resize(below(5));
    for (int32_t& split : tensor.splits) split = static_cast<int32_t>(random_());
  }

  std::mt19937 random_;
};

}  // namespace hvd::test
