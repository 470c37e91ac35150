// prepared.h - a submission that repeats: its values are kept, its slot is remembered.
// Filled by one thread; submitted by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/operation/operation.h"
#include "engine/operation/submission.h"

namespace hvd::engine {

class Channel;

class Prepared {
 public:
  Prepared(int32_t set, const Submission& submission);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  const Submission& submission() const { return submission_; }
  bool is_empty(size_t index) const;  // tensor without elements
  void set_buffers(size_t index, const void* input, void* output) {
    tensors_[index].input = input;
    tensors_[index].output = output;
  }
  void set_stream(void* stream) { submission_.stream = stream; }
  size_t tensor_count() const { return tensors_.size(); }
  int32_t set() const { return set_; }

  // Guarded by the submit lock: where the last submission found its slot.
  Channel* channel = nullptr;
  uint64_t engine_number = 0;  // the engine it was prepared for
  CachedPtr slot;
  NameState* name = nullptr;

 private:
  const int32_t set_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<int32_t>> splits_;
  std::vector<TensorArg> tensors_;
  Submission submission_;
};

}  // namespace hvd::engine
