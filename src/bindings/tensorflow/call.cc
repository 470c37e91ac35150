#include "bindings/tensorflow/call.h"

#include <cstring>
#include <utility>

namespace hvd::tensorflow {

Call::Call(const Kernel& kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done)
    : kernel_(kernel), context_(context), done_(done) {}

void Call::start(const Kernel& kernel, TF_OpKernelContext* context,
                 TF_AsyncOpKernelDoneCallback* done) {
  Call* const call = new Call(kernel, context, done);  // deleted by end()
  if (!call->take_inputs()) return call->finish();
  call->bindings::Call::start();
}

bool Call::refuse(const std::string& text) {
  status_.set(kInvalidArgument, text);
  return false;
}

void Call::fail(hvd_status status, const char* message) { status_.set(code_of(status), message); }

// ---- inputs

// The stream of a device that a plug-in has brought is a struct of that plug-in; the driver's
// handle is its first field. That is a convention, so that kernels for GPUs have to be asked for.
bool Call::take_stream() {
  if (kernel_.place == Place::kHost) return true;
  SP_Stream_st* const stream = api().GetStream(context_, status_.get());
  if (!status_.is_ok()) return false;
  device_ = api().GetDeviceId(context_);
  if (stream == nullptr || device_ < 0) {
    fail(HVD_PRECONDITION_ERROR,
         "TensorFlow does not tell the stream and the number of the device");
    return false;
  }
  std::memcpy(&stream_, static_cast<const void*>(stream), sizeof(stream_));
  return true;
}

bool Call::take_inputs() {
  if (!take_stream()) return false;
  parts_.resize(static_cast<size_t>(kernel_.tensor_count));
  prepare_requests(kernel_.traits->takes_tensors ? parts_.size() : 1, kernel_.traits->kind,
                   kernel_.traits->is_group ? Form::kGroup : Form::kSingle);
  for (hvd_request& request : requests_) {
    request.reduce_op = kernel_.reduce_op;
    request.process_set = kernel_.process_set;
    request.root_rank = kernel_.root_rank;
    request.wire_dtype = kernel_.wire_dtype;
    request.prescale = kernel_.prescale;
    request.postscale = kernel_.postscale;
    request.device = device_;
    request.stream = stream_;
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!take_input(static_cast<int>(i), parts_[i])) return false;
    fill(parts_[i], requests_[i]);
  }
  return kernel_.traits->kind != HVD_ALLTOALL || take_splits();
}

bool Call::take_input(int index, Part& part) {
  TF_Tensor* input = nullptr;
  api().GetInput(context_, index, &input, status_.get());
  if (!status_.is_ok()) return false;
  part.call = this;
  part.index = index;
  part.input.reset(input);
  part.dtype = api().TensorType(input);
  part.shape.resize(static_cast<size_t>(api().NumDims(input)));
  for (size_t d = 0; d < part.shape.size(); ++d)
    part.shape[d] = api().Dim(input, static_cast<int>(d));
  if (dtype_of(part.dtype) < 0) {
    return refuse(kernel_.name + ": TensorFlow's dtype number " + std::to_string(part.dtype) +
                  " is not supported");
  }
  return !kernel_.traits->keeps_shape || prepare_output(part);
}

// The root of a broadcast keeps its value: the output is the input's buffer once more, which is
// only read. Elsewhere an output in the memory of the input where nobody else needs that.
// TensorFlow decides it by the references to the buffer, so ours must go first.
bool Call::prepare_output(Part& part) {
  if (kernel_.traits->kind == HVD_BROADCAST && hvd_rank() == kernel_.root_rank) {
    api().SetOutput(context_, part.index, part.input.get(), status_.get());
    return status_.is_ok();
  }
  part.input.reset();
  int forwarded = -1;
  part.output.reset(api().ForwardInputOrAllocateOutput(
      context_, &part.index, 1, part.index, part.shape.data(), static_cast<int>(part.shape.size()),
      &forwarded, status_.get()));
  if (!status_.is_ok() || forwarded == part.index) return status_.is_ok();
  TF_Tensor* input = nullptr;
  api().GetInput(context_, part.index, &input, status_.get());
  part.input.reset(input);
  return status_.is_ok();
}

void Call::fill(Part& part, hvd_request& request) {
  request.dtype = dtype_of(part.dtype);
  request.ndim = static_cast<int32_t>(part.shape.size());
  request.shape = part.shape.data();
  const TF_Tensor* const input = part.input ? part.input.get() : part.output.get();
  request.input = api().TensorData(input);
  if (part.output) {
    request.output = api().TensorData(part.output.get());
  } else if (kernel_.traits->keeps_shape) {
    request.output = api().TensorData(input);
  } else {
    request.allocate = &Call::allocate;
    request.allocate_context = &part;
  }
  if (kernel_.name.empty()) return;
  part.name = kernel_.name;
  if (kernel_.traits->is_group) {
    part.name += "_" + std::to_string(part.index + 1) + "of" + std::to_string(parts_.size());
  }
  request.name = part.name.c_str();
}

bool Call::take_splits() {
  TF_Tensor* splits = nullptr;
  api().GetInput(context_, 1, &splits, status_.get());
  if (!status_.is_ok()) return false;
  splits_.reset(splits);
  if (api().NumDims(splits) != 1) {
    return refuse("alltoall expects a 1D splits tensor, got " +
                  std::to_string(api().NumDims(splits)) + " dimensions");
  }
  const int64_t count = api().Dim(splits, 0);
  if (count == 0) return true;  // as many rows to each
  requests_[0].splits = static_cast<const int32_t*>(api().TensorData(splits));
  requests_[0].splits_count = static_cast<int32_t>(count);
  return true;
}

// ---- in the core

void* Call::allocate(void* context, const int64_t* shape, int32_t ndim, size_t bytes) {
  Part& part = *static_cast<Part*>(context);
  Status status;
  part.output.reset(api().AllocateOutput(part.call->context_, part.index, part.dtype, shape, ndim,
                                         bytes, status.get()));
  return status.is_ok() ? api().TensorData(part.output.get()) : nullptr;
}

// ---- results

void Call::take_results(hvd_handle handle) {
  // TensorFlow's stream may get the memory of the inputs next, and reads the outputs.
  if (kernel_.place != Place::kHost) {
    if (const hvd_status status = hvd_order(handle, stream_); status != HVD_OK)
      return fail(status, hvd_last_error());
  }
  if (kernel_.traits->kind != HVD_ALLTOALL && kernel_.traits->kind != HVD_JOIN) return;
  hvd_output output = {};
  output.struct_size = sizeof(output);
  if (const hvd_status status = hvd_get_output(handle, 0, &output); status != HVD_OK) {
    fail(status, hvd_last_error());
  } else if (kernel_.traits->kind == HVD_JOIN) {
    write_output(0, &output.last_joined_rank, nullptr, 0);
  } else {
    const int64_t count = output.received_splits_count;
    write_output(1, output.received_splits, &count, 1);
  }
}

void Call::write_output(int index, const int32_t* values, const int64_t* shape, int ndim) {
  const size_t bytes = sizeof(int32_t) * static_cast<size_t>(ndim == 0 ? 1 : *shape);
  const Tensor output(
      api().AllocateOutput(context_, index, kInt32, shape, ndim, bytes, status_.get()));
  if (status_.is_ok() && bytes > 0) std::memcpy(api().TensorData(output.get()), values, bytes);
}

void Call::end() {
  if (!status_.is_ok()) api().OpKernelContext_Failure(context_, status_.get());
  HeldDone done = std::move(done_);
  delete this;  // before TensorFlow goes on: it may count on the only reference to a buffer
  done.run();   // the context and the kernel may be gone from here on
}

}  // namespace hvd::tensorflow
