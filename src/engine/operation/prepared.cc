#include "engine/operation/prepared.h"

#include <algorithm>

namespace hvd::engine {

Prepared::Prepared(int32_t set, const Submission& submission) : set_(set), submission_(submission) {
  const size_t count = submission.tensors.size();
  names_.reserve(count);  // views into these must not move
  shapes_.reserve(count);
  splits_.reserve(count);
  for (const TensorArg& tensor : submission.tensors) {
    names_.emplace_back(tensor.name);
    shapes_.emplace_back(tensor.shape.begin(), tensor.shape.end());
    splits_.emplace_back(tensor.splits.begin(), tensor.splits.end());
    TensorArg copy = tensor;
    copy.name = names_.back();
    copy.shape = shapes_.back();
    copy.splits = splits_.back();
    tensors_.push_back(copy);
  }
  submission_.tensors = tensors_;
  submission_.ranks = {};
}

bool Prepared::is_empty(size_t index) const {
  return std::find(shapes_[index].begin(), shapes_[index].end(), 0) != shapes_[index].end();
}

}  // namespace hvd::engine
