#include "resnet50.h"

#include <numeric>

#include "error.h"

namespace hvd::bench {
namespace {

struct Convolution {
  size_t in, out, kernel;
};

// The weights of a convolution, then scale and shift of the batch norm behind it.
void append(std::vector<size_t>& counts, const Convolution& c) {
  counts.push_back(c.in * c.out * c.kernel * c.kernel);
  counts.push_back(c.out);
  counts.push_back(c.out);
}

}  // namespace

std::vector<size_t> resnet50_element_counts() {
  constexpr size_t kClasses = 1000;
  constexpr size_t kExpansion = 4;  // a bottleneck block puts out 4 times its width
  struct Stage {
    size_t width, blocks;
  };
  std::vector<size_t> counts;
  counts.reserve(kResnet50Tensors);
  append(counts, {.in = 3, .out = 64, .kernel = 7});
  size_t channels = 64;
  for (const Stage& stage : {Stage{64, 3}, Stage{128, 4}, Stage{256, 6}, Stage{512, 3}}) {
    const size_t wide = stage.width * kExpansion;
    for (size_t block = 0; block < stage.blocks; ++block) {
      append(counts, {.in = channels, .out = stage.width, .kernel = 1});
      append(counts, {.in = stage.width, .out = stage.width, .kernel = 3});
      append(counts, {.in = stage.width, .out = wide, .kernel = 1});
      if (block == 0) append(counts, {.in = channels, .out = wide, .kernel = 1});  // shortcut
      channels = wide;
    }
  }
  counts.push_back(channels * kClasses);
  counts.push_back(kClasses);

  if (counts.size() != kResnet50Tensors ||
      std::accumulate(counts.begin(), counts.end(), size_t{0}) != kResnet50Elements) {
    throw BenchError("the ResNet-50 table does not add up");
  }
  return counts;
}

}  // namespace hvd::bench
