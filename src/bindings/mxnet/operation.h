// operation.h - what Python asks for in one call; a struct of ctypes has the same fields.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hvd::mxnet {

struct Operation {
  int32_t kind;  // hvd_kind
  int32_t reduce_op;
  int32_t wire_dtype;
  int32_t process_set;
  int32_t root_rank;
  int32_t priority;   // of the engine: higher runs earlier
  int32_t is_group;   // 1: all tensors or nothing, also if it is one
  int32_t count;      // of tensors
  int32_t is_direct;  // 1: whoever pushes begins it, if the arrays are ready
  int32_t unused;
  double prescale, postscale;
};
static_assert(sizeof(Operation) == 56 && offsetof(Operation, prescale) == 40);

}  // namespace hvd::mxnet
