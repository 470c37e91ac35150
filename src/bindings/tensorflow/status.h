// status.h - TensorFlow's status objects and tensors with owners, and the core's codes as
// TensorFlow's.
#pragma once

#include <memory>
#include <string>

#include "bindings/tensorflow/api.h"
#include "horovod/hvd.h"

namespace hvd::tensorflow {

class Status {
 public:
  Status() : status_(api().NewStatus()) {}
  ~Status() { api().DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  TF_Status* get() const { return status_; }
  bool is_ok() const { return api().GetCode(status_) == kOk; }
  void set(Code code, const std::string& text) { api().SetStatus(status_, code, text.c_str()); }

 private:
  TF_Status* const status_;
};

struct TensorDeleter {
  void operator()(TF_Tensor* tensor) const { api().DeleteTensor(tensor); }
};
using Tensor = std::unique_ptr<TF_Tensor, TensorDeleter>;

// The TensorFlow error that users of the original catch for a failure of the core.
Code code_of(hvd_status status);

// The core's number of a TensorFlow dtype; -1: the core does not know it.
int32_t dtype_of(int tensorflow_dtype);

}  // namespace hvd::tensorflow
