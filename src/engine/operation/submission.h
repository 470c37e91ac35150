// submission.h - what a caller hands in: views only, nothing is owned. Valid for the duration of
// the call; buffers themselves until completion.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "base/settings.h"
#include "wire/request.h"

namespace hvd::engine {

using AllocateFn = void* (*)(void* context, const int64_t* shape, int32_t ndim, size_t bytes);
using CallbackFn = void (*)(void* context, uint64_t handle, int status, const char* message);

struct TensorArg {
  std::string_view name;  // empty: unnamed
  DType dtype = DType::kFloat32;
  std::span<const int64_t> shape;
  std::span<const int32_t> splits;
  const void* input = nullptr;
  void* output = nullptr;
  AllocateFn allocate = nullptr;
  void* allocate_context = nullptr;
};

struct Submission {
  wire::Kind kind = wire::Kind::kAllreduce;
  ReduceOp reduce_op = ReduceOp::kSum;
  int32_t wire_dtype = -1;
  int32_t root_rank = -1;
  int32_t device = -1;
  void* stream = nullptr;  // of the device: makes the buffers ready
  double prescale = 1.0;
  double postscale = 1.0;
  std::span<const TensorArg> tensors;
  std::span<const int32_t> ranks;  // process set add: members; remove: {id}
  ProgressPolicy progress = ProgressPolicy::kAuto;
  CallbackFn on_complete = nullptr;
  void* callback_context = nullptr;
};

// Nobody waits for it, as far as one can know: the background thread drives it. What happens in
// streams goes on beside the caller's computation only if somebody starts it.
inline bool wants_background(const Submission& s, ProgressPolicy progress) {
  return progress == ProgressPolicy::kBackground ||
         (progress == ProgressPolicy::kAuto && (s.on_complete != nullptr || s.device >= 0));
}

wire::Request make_request(const Submission& submission);
// The request of an agreed slot says the same as this submission.
bool says_the_same(const Submission& submission, const wire::Request& request);
// Same value for submissions that say the same, names left out.
uint64_t signature_hash(const Submission& submission);
uint64_t signature_hash(const wire::Request& request);

}  // namespace hvd::engine
