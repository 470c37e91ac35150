// attributes.h - what a custom call asks of the core.
//
// Written by horovod/jax/_primitive.py. Attributes that are missing keep their defaults; one of
// another name is left alone, so that a newer front end can say more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/jax/ffi.h"

namespace hvd::jax {

struct Wish {
  int32_t kind = HVD_ALLREDUCE;
  int32_t reduce_op = HVD_OP_SUM;
  int32_t wire_dtype = -1;
  int32_t process_set = 0;
  int32_t root_rank = 0;
  int32_t is_group = 0;
  double prescale = 1.0, postscale = 1.0;
  std::string name;  // empty: matched by order with other unnamed ones
  std::vector<int32_t> splits;
};

// Copies all: the attributes are gone when the handler returns.
Wish read_attributes(const Attributes& attributes);

}  // namespace hvd::jax
