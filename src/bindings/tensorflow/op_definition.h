// op_definition.h - the definition of one op: attributes, inputs, outputs, how shapes follow.
#pragma once

#include <initializer_list>
#include <string>

#include "bindings/tensorflow/api.h"

namespace hvd::tensorflow {

// Whether TensorFlow must keep the op though nobody uses its result, and in order with others like
// it. Collectives are stateless: inside tf.function stateful ones would run one after the other.
enum class Effects { kNone, kStateful };

struct OpDefinition {
  const char* name;
  std::initializer_list<const char*> attributes;
  std::initializer_list<const char*> inputs;
  std::initializer_list<const char*> outputs;
  ShapeFunction shapes;
  Effects effects = Effects::kNone;
};

void register_op(const OpDefinition& definition, std::string& problems);
void register_kernel(const char* op_name, CreateFunction create, ComputeAsyncFunction compute,
                     DeleteFunction destroy, std::string& problems);
// For tensors on GPUs; `on_host`: arguments that lie in host memory all the same.
void register_gpu_kernel(const char* op_name, CreateFunction create, ComputeAsyncFunction compute,
                         DeleteFunction destroy, std::initializer_list<const char*> on_host,
                         std::string& problems);
void register_kernel(const char* op_name, CreateFunction create, ComputeFunction compute,
                     DeleteFunction destroy, std::string& problems);

// ---- shape functions

void outputs_like_inputs(TF_ShapeInferenceContext* context, TF_Status* status);
// The first dimension is known only at run time.
void outputs_with_other_rows(TF_ShapeInferenceContext* context, TF_Status* status);
// Input: tensor, splits; output: tensor with other rows, a vector.
void outputs_of_alltoall(TF_ShapeInferenceContext* context, TF_Status* status);
void output_is_scalar(TF_ShapeInferenceContext* context, TF_Status* status);
void no_outputs(TF_ShapeInferenceContext* context, TF_Status* status);

}  // namespace hvd::tensorflow
