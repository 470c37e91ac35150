// The smallest job: init, one allreduce, exit. Its start is what `launch` measures.
#include <horovod/hvd.h>

#include <cstdio>

int main() {
  if (hvd_init(nullptr) != HVD_OK) {
    std::fprintf(stderr, "bench: init: %s\n", hvd_last_error());
    return 1;
  }
  const int64_t shape[] = {1};
  float value = 1;
  hvd_request request;
  hvd_request_init(&request);
  request.kind = HVD_ALLREDUCE;
  request.dtype = HVD_FLOAT32;
  request.reduce_op = HVD_OP_SUM;
  request.ndim = 1;
  request.shape = shape;
  request.input = &value;
  request.output = &value;
  request.name = "tiny";
  const float expected = static_cast<float>(hvd_size());
  if (hvd_run(&request, HVD_FOREVER) != HVD_OK || value != expected) {
    std::fprintf(stderr, "bench: allreduce gave %g, expected %g: %s\n", value, expected,
                 hvd_last_error());
    return 1;
  }
  return hvd_shutdown() == HVD_OK ? 0 : 1;
}
