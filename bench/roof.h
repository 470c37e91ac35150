// roof.h - the least any allreduce must do to memory: every byte read once and written once.
// An allreduce of S bytes over P ranks that copies nothing lets each rank read P shares of S/P and
// write the sum back to all P. The roof does exactly that, privately, on all cores at the same
// time.
#pragma once

#include <cstddef>

namespace hvd::bench {

// Sums the `shares` equal slices of data[0..count) and writes the sum to each of them.
void reduce_like_an_allreduce(float* data, size_t count, int shares);

}  // namespace hvd::bench
