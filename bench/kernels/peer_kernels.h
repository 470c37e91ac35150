// peer_kernels.h - what our kernels are compared with: Gloo's sums and the C library's copy.
// Pure; any thread.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace hvd::bench {

struct PeerKernel {
  const char* peer;                                                    // "gloo"
  void (*run)(void* out, const void* a, const void* b, size_t count);  // null: the peer has none
};

PeerKernel peer_sum(DType dtype);
PeerKernel peer_copy();  // ignores b, counts bytes

}  // namespace hvd::bench
