#include "peer_kernels.h"

#include <gloo/math.h>

#include <cstring>

namespace hvd::bench {

PeerKernel peer_sum(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {"gloo", gloo::sum<gloo::float16>};
    case DType::kFloat32:
      return {"gloo", gloo::sum<float>};
    case DType::kFloat64:
      return {"gloo", gloo::sum<double>};
    default:
      return {"gloo", nullptr};
  }
}

PeerKernel peer_copy() {
  return {"memcpy",
          [](void* out, const void* a, const void*, size_t count) { std::memcpy(out, a, count); }};
}

}  // namespace hvd::bench
