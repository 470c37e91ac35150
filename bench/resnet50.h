// resnet50.h - the sizes of ResNet-50's 161 trainable tensors, in the order of the layers.
#pragma once

#include <cstddef>
#include <vector>

namespace hvd::bench {

inline constexpr size_t kResnet50Tensors = 161;
inline constexpr size_t kResnet50Elements = 25'557'032;

std::vector<size_t> resnet50_element_counts();

}  // namespace hvd::bench
