// kernel.h - what one node of a graph (or one eager call site) asks of the core.
//
// Made by TensorFlow once per node and shared by every execution of it, on any thread: nothing in
// it changes after construction.
#pragma once

#include <cstdint>
#include <string>

#include "bindings/tensorflow/api.h"
#include "horovod/hvd.h"

namespace hvd::tensorflow {

// Fixed by the type of the op.
struct OpTraits {
  const char* op_name;    // TensorFlow's name of the op: "HorovodAllreduce"
  const char* operation;  // the word in names of operations: "allreduce", "grouped_allgather"
  hvd_kind kind;
  bool is_group;
  bool reduces;        // has reduce_op and factors
  bool keeps_shape;    // output like input; otherwise the core asks for it after negotiation
  bool takes_tensors;  // false: join, barrier
};

// Where the tensors of a kernel lie.
enum class Place { kHost, kGpu };

struct Kernel {
  const OpTraits* traits = nullptr;
  Place place = Place::kHost;
  std::string name;   // "<operation>.<name>"; empty: matched by order with other unnamed ones
  std::string queue;  // operations with the same one follow each other; empty: no waiting
  int32_t process_set = 0;
  int32_t reduce_op = HVD_OP_SUM;
  int32_t wire_dtype = -1;
  int32_t root_rank = 0;
  int32_t tensor_count = 0;
  double prescale = 1.0, postscale = 1.0;
};

// Reads the attributes of the node. Null: TensorFlow has been told why.
Kernel* make_kernel(const OpTraits& traits, Place place, TF_OpKernelConstruction* construction);

// The name by which ranks match an operation. `tensor_name`: given by the user, wins; `node_name`:
// that of the node, which is the type of the op in eager execution and then says nothing.
std::string operation_name(const OpTraits& traits, const std::string& tensor_name,
                           const std::string& node_name, bool ignore_name_scope);

}  // namespace hvd::tensorflow
