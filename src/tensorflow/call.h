// call.h - one execution of a kernel, from TensorFlow's call to its completion.
//
// A call owns itself: start() hands it to the core, and the core's callback, on whatever thread
// steps the engine, gives TensorFlow its outputs or an error and deletes it. TensorFlow waits for
// every call that it has begun, and has no way to cancel one: each must end, and the core sees to
// that when the job fails or shuts down.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/held_done.h"
#include "tensorflow/kernel.h"
#include "tensorflow/status.h"

namespace hvd::tensorflow {

class Call {
 public:
  // On TensorFlow's thread; never blocks.
  static void start(const Kernel& kernel, TF_OpKernelContext* context,
                    TF_AsyncOpKernelDoneCallback* done);

  // When its name is free. The call may have ended when this returns.
  void submit();

  const std::string& queue() const { return kernel_.queue; }

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
  bool take_input(int index, Part& part);
  bool prepare_output(Part& part);
  bool take_splits();
  bool fail(Code code, const std::string& text);
  void fill(Part& part, hvd_request& request);

  static void* allocate(void* part, const int64_t* shape, int32_t ndim, size_t bytes);
  static void on_complete(void* call, hvd_handle handle, hvd_status status, const char* message);
  void take_results(hvd_handle handle);
  void write_output(int index, const int32_t* values, const int64_t* shape, int ndim);
  // Tells TensorFlow and deletes the call.
  void finish();

  const Kernel& kernel_;
  TF_OpKernelContext* const context_;
  HeldDone done_;
  Status status_;
  std::vector<Part> parts_;
  Tensor splits_;
  std::vector<hvd_request> requests_;
};

}  // namespace hvd::tensorflow
