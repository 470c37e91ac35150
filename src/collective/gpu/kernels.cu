// kernels.cu - the entries of our module for GPUs. Not part of the build: `./dev ptx` makes
// kernels_ptx.cc of it with clang, which needs nothing of CUDA.
#include <cstdint>
#include <limits>

#include "reduce/kernels.h"

#pragma clang force_cuda_host_device begin
#include "collective/gpu/kernel_arithmetic.h"
#pragma clang force_cuda_host_device end

namespace hvd::collective::gpu {

// The grid is blocks by segments.
#define HVD_ENTRY(name, ...)                                                                      \
  extern "C" __attribute__((global)) void name(const Batch batch, const Scale scale) {            \
    const uint64_t width = __nvvm_read_ptx_sreg_ntid_x();                                         \
    const uint64_t first =                                                                        \
        static_cast<uint64_t>(__nvvm_read_ptx_sreg_ctaid_x()) * width +                           \
        static_cast<uint64_t>(__nvvm_read_ptx_sreg_tid_x());                                      \
    const uint64_t step = width * static_cast<uint64_t>(__nvvm_read_ptx_sreg_nctaid_x());         \
    run_segment(__VA_ARGS__(scale), batch.segments[__nvvm_read_ptx_sreg_ctaid_y()], first, step); \
  }
HVD_GPU_KERNELS(HVD_ENTRY)

}  // namespace hvd::collective::gpu
