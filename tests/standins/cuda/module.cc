// Modules and launches of the stand-in: a kernel is known by its name, and runs in stream order
// what its source computes when it is compiled for the host. The text of a module is read far
// enough to refuse what an old driver would refuse.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "collective/gpu/kernel_arithmetic.h"
#include "tests/standins/cuda/state.h"
#include "tests/standins/cuda/stream.h"

namespace {

using namespace hvd::collective::gpu;  // NOLINT

constexpr double kNewestText = 6.3;  // of the oldest driver that has to take it

using RunKernel = void (*)(const Segment&, const hvd::Scale&);
template <class Kernel>
void run(const Segment& segment, const hvd::Scale& scale) {
  run_segment(Kernel(scale), segment, 0, 1);
}

const std::map<std::string, RunKernel>& known_kernels() {
  static const auto* all = new std::map<std::string, RunKernel>{
#define STANDIN_KERNEL(name, ...) {#name, run<__VA_ARGS__>},
      HVD_GPU_KERNELS(STANDIN_KERNEL)};
  return *all;
}

struct Module {
  std::string text;
};

}  // namespace

extern "C" {

int cuModuleLoadData(void** module, const void* image) {
  if (const int planned = standin::planned_failure(__func__); planned != 0) return planned;
  const std::string text = static_cast<const char*>(image);
  const size_t at = text.find(".version ");
  if (at == text.npos || std::atof(text.c_str() + at + 9) > kNewestText) return 222;
  *module = new Module{text};  // contexts keep theirs for ever
  return 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::string entry = std::string(".visible .entry ") + name + "(";
  const auto found = known_kernels().find(name);
  if (static_cast<Module*>(module)->text.find(entry) == std::string::npos) return 500;
  if (found == known_kernels().end()) return 500;
  *function = reinterpret_cast<void*>(found->second);
  return 0;
}

int cuLaunchKernel(void* function, unsigned blocks, unsigned rows, unsigned, unsigned threads,
                   unsigned, unsigned, unsigned, void* stream, void** parameters, void**) {
  if (const int planned = standin::planned_failure(__func__); planned != 0) return planned;
  if (blocks == 0 || rows == 0 || rows > kMostSegments || threads == 0 || threads > 1024) return 1;
  Batch batch = *static_cast<const Batch*>(parameters[0]);
  const hvd::Scale scale = *static_cast<const hvd::Scale*>(parameters[1]);
  for (unsigned i = 0; i < rows; ++i) {
    Segment& segment = batch.segments[i];
    if (standin::device_of(segment.in) < 0 || standin::device_of(segment.out) < 0) return 700;
    segment.in = standin::touchable(segment.in);
    segment.out = standin::touchable(segment.out);
  }
  auto* const kernel = reinterpret_cast<RunKernel>(function);
  ++standin::counters().kernels;
  standin::stream_of(stream).enqueue([=] {
    for (unsigned i = 0; i < rows; ++i) kernel(batch.segments[i], scale);
  });
  return 0;
}
}
