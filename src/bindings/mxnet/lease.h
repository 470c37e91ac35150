// lease.h - a handle that two threads use: the one that waits, and the one that ends the operation.
//
// The core may give the place of a released handle to another operation, so nobody may wait for
// it then. The last of the two releases it, and frees this; the operation itself may be gone.
#pragma once

#include <atomic>

#include "horovod/hvd.h"

namespace hvd::mxnet {

class Lease {
 public:
  // Once by each of the two; this may be gone afterwards.
  void give_back(hvd_handle handle) {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    static_cast<void>(hvd_release(handle));
    delete this;
  }

  // By the one that waits, if the core has refused: there is no handle, and nobody else.
  void cancel() { delete this; }

 private:
  ~Lease() = default;

  std::atomic<int> users_{2};  // the last one sees what the other has done with the handle
};

}  // namespace hvd::mxnet
