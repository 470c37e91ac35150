// held_done.h - the completion callback of an asynchronous kernel, made safe to keep.
//
// Up to release 2.21 TensorFlow passes the address of a std::function that lies on the stack of the
// calling thread and is gone when the kernel's compute function returns; from 2.22 on one on the
// heap, which TF_RunAsyncOpKernelDoneCallback frees. The address tells which. A callback on the
// stack is copied: it is an object of libstdc++, whose layout has been the same since GCC 5.
#pragma once

#include <functional>

#include "bindings/tensorflow/api.h"

namespace hvd::tensorflow {

class HeldDone {
 public:
  // The first thing that a compute function does, on the thread that TensorFlow called it on.
  explicit HeldDone(TF_AsyncOpKernelDoneCallback* done);

  // Once, from any thread; the kernel's context is gone afterwards.
  void run();

 private:
  std::function<void()> copy_;  // empty: raw_ is used
  TF_AsyncOpKernelDoneCallback* raw_ = nullptr;
};

}  // namespace hvd::tensorflow
