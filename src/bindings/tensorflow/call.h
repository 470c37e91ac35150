// call.h - one execution of a kernel, from TensorFlow's call to its completion.
//
// bindings::Call is its life; here is what TensorFlow gives and gets: inputs, outputs in the memory
// of inputs where possible, errors as a status of the kernel's context.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/common/call.h"
#include "bindings/tensorflow/held_done.h"
#include "bindings/tensorflow/kernel.h"
#include "bindings/tensorflow/status.h"

namespace hvd::tensorflow {

class Call final : public bindings::Call {
 public:
  // On TensorFlow's thread; never blocks.
  static void start(const Kernel& kernel, TF_OpKernelContext* context,
                    TF_AsyncOpKernelDoneCallback* done);

  const std::string& queue() const override { return kernel_.queue; }

 private:
  struct Part {  // one tensor
    Call* call = nullptr;
    int index = 0;
    int dtype = 0;  // TensorFlow's
    std::vector<int64_t> shape;
    std::string name;
    Tensor input, output;
  };

  Call(const Kernel& kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done);

  // Each false: the failure is recorded, and finish() is next.
  bool take_inputs();
  bool take_stream();
  bool take_input(int index, Part& part);
  bool prepare_output(Part& part);
  bool take_splits();
  bool refuse(const std::string& text);
  void fill(Part& part, hvd_request& request);

  static void* allocate(void* part, const int64_t* shape, int32_t ndim, size_t bytes);
  void take_results(hvd_handle handle) override;
  void fail(hvd_status status, const char* message) override;
  void write_output(int index, const int32_t* values, const int64_t* shape, int ndim);
  void end() override;

  const Kernel& kernel_;
  TF_OpKernelContext* const context_;
  HeldDone done_;
  Status status_;
  int32_t device_ = -1;     // -1: host memory
  void* stream_ = nullptr;  // of the device: CUstream
  std::vector<Part> parts_;
  Tensor splits_;
};

}  // namespace hvd::tensorflow
