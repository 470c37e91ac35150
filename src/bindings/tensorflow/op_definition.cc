#include "bindings/tensorflow/op_definition.h"

#include <cstdint>
#include <memory>

#include "bindings/tensorflow/status.h"

namespace hvd::tensorflow {
namespace {

constexpr const char* kDevice = "CPU";
constexpr const char* kGpu = "GPU";

struct ShapeDeleter {
  void operator()(TF_ShapeHandle* shape) const { api().DeleteShapeHandle(shape); }
};
using Shape = std::unique_ptr<TF_ShapeHandle, ShapeDeleter>;

bool is_ok(const TF_Status* status) { return api().GetCode(status) == kOk; }

void note(const char* op_name, const Status& status, std::string& problems) {
  if (status.is_ok()) return;
  if (!problems.empty()) problems += "; ";
  problems += std::string(op_name) + ": " + api().Message(status.get());
}

Shape input_shape(TF_ShapeInferenceContext* context, int index, TF_Status* status) {
  Shape shape(api().NewShapeHandle());
  api().ShapeInferenceContextGetInput(context, index, shape.get(), status);
  return shape;
}

// Output `index`: input `index` with an unknown number of rows. A scalar is refused.
void other_rows(TF_ShapeInferenceContext* context, int index, TF_Status* status) {
  const Shape input = input_shape(context, index, status);
  if (!is_ok(status)) return;
  if (api().ShapeInferenceContextRankKnown(context, input.get()) == 0) {
    return api().ShapeInferenceContextSetOutput(context, index, input.get(), status);
  }
  const Shape checked(api().NewShapeHandle()), row(api().NewShapeHandle()),
      output(api().NewShapeHandle());
  api().ShapeInferenceContextWithRankAtLeast(context, input.get(), 1, checked.get(), status);
  if (!is_ok(status)) return;
  api().ShapeInferenceContextSubshape(context, checked.get(), 1, INT64_MAX, row.get(), status);
  if (!is_ok(status)) return;
  // TensorFlow takes -1 for a dimension it does not know.
  const Shape rows(api().ShapeInferenceContextVectorFromSize(context, static_cast<size_t>(-1)));
  api().ShapeInferenceContextConcatenateShapes(context, rows.get(), row.get(), output.get(),
                                               status);
  if (is_ok(status)) api().ShapeInferenceContextSetOutput(context, index, output.get(), status);
}

void add_kernel(const char* op_name, TF_KernelBuilder* builder, std::string& problems) {
  Status status;
  api().RegisterKernelBuilder(op_name, builder, status.get());
  note(op_name, status, problems);
}

}  // namespace

void register_op(const OpDefinition& definition, std::string& problems) {
  TF_OpDefinitionBuilder* const builder = api().NewOpDefinitionBuilder(definition.name);
  for (const char* text : definition.attributes) api().OpDefinitionBuilderAddAttr(builder, text);
  for (const char* text : definition.inputs) api().OpDefinitionBuilderAddInput(builder, text);
  for (const char* text : definition.outputs) api().OpDefinitionBuilderAddOutput(builder, text);
  // TensorFlow sets the flag whatever the argument says.
  if (definition.effects == Effects::kStateful)
    api().OpDefinitionBuilderSetIsStateful(builder, true);
  api().OpDefinitionBuilderSetShapeInferenceFunction(builder, definition.shapes);
  Status status;
  api().RegisterOpDefinition(builder, status.get());
  note(definition.name, status, problems);
}

void register_kernel(const char* op_name, CreateFunction create, ComputeAsyncFunction compute,
                     DeleteFunction destroy, std::string& problems) {
  add_kernel(op_name, api().NewAsyncKernelBuilder(op_name, kDevice, create, compute, destroy),
             problems);
}

void register_gpu_kernel(const char* op_name, CreateFunction create, ComputeAsyncFunction compute,
                         DeleteFunction destroy, std::initializer_list<const char*> on_host,
                         std::string& problems) {
  TF_KernelBuilder* const builder =
      api().NewAsyncKernelBuilder(op_name, kGpu, create, compute, destroy);
  for (const char* argument : on_host) api().KernelBuilder_HostMemory(builder, argument);
  add_kernel(op_name, builder, problems);
}

void register_kernel(const char* op_name, CreateFunction create, ComputeFunction compute,
                     DeleteFunction destroy, std::string& problems) {
  add_kernel(op_name, api().NewKernelBuilder(op_name, kDevice, create, compute, destroy), problems);
}

// ---- shape functions

void outputs_like_inputs(TF_ShapeInferenceContext* context, TF_Status* status) {
  const auto count = static_cast<int>(api().ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && is_ok(status); ++i) {
    const Shape input = input_shape(context, i, status);
    if (is_ok(status)) api().ShapeInferenceContextSetOutput(context, i, input.get(), status);
  }
}

void outputs_with_other_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  const auto count = static_cast<int>(api().ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && is_ok(status); ++i) other_rows(context, i, status);
}

void outputs_of_alltoall(TF_ShapeInferenceContext* context, TF_Status* status) {
  other_rows(context, 0, status);
  if (!is_ok(status)) return;
  const Shape splits(api().ShapeInferenceContextVectorFromSize(context, static_cast<size_t>(-1)));
  api().ShapeInferenceContextSetOutput(context, 1, splits.get(), status);
}

void output_is_scalar(TF_ShapeInferenceContext* context, TF_Status* status) {
  const Shape scalar(api().ShapeInferenceContextScalar(context));
  api().ShapeInferenceContextSetOutput(context, 0, scalar.get(), status);
}

void no_outputs(TF_ShapeInferenceContext* context, TF_Status* status) {
  static_cast<void>(context);
  api().SetStatus(status, kOk, "");
}

}  // namespace hvd::tensorflow
