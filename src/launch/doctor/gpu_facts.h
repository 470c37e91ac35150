// gpu_facts.h - what this host has for GPUs: the driver, its devices, NCCL. Loads both, and asks a
// Python interpreter for a packaged NCCL. Bounded in time; one thread.
#pragma once

#include <string>
#include <vector>

#include "launch/os/environment_list.h"

namespace hvd::launch {

struct GpuFacts {
  int device_count = 0;     // 0: none can be used
  std::string driver_text;  // which driver and devices, or why none
  bool has_nccl = false;
  std::string nccl_text;  // which NCCL, or why none
  std::string nccl_path;  // its file, where a program has to be told; empty: the usual one
};

// `pythons`: interpreters that may have NCCL as a package, in this order.
GpuFacts find_gpus(const EnvironmentList& environment, const std::vector<std::string>& pythons);

}  // namespace hvd::launch
