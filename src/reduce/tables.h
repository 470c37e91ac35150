// tables.h - the tables that the build can link, for dispatch alone.
// A table may be run only where the machine has its instructions; available_kernels() knows.
#pragma once

#include "reduce/kernels.h"

namespace hvd {

extern const Kernels kBaselineKernels;  // kernels_baseline.cc, always there
extern const Kernels kAvx2Kernels;      // x86/kernels_avx2.cc

}  // namespace hvd
