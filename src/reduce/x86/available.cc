#include <cpuid.h>

#include "reduce/tables.h"

namespace hvd {
namespace {

// Clang 14 does not know "f16c" in __builtin_cpu_supports. That the system saves the wide registers
// is part of its answer about "avx2".
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

KernelTables available_kernels() {
  if (__builtin_cpu_supports("avx2") && has_f16c()) {
    return {{&kAvx2Kernels, &kBaselineKernels}, 2};
  }
  return {{&kBaselineKernels}, 1};
}

}  // namespace hvd
