#include "bindings/mxnet/array.h"

#include <utility>

#include "horovod/hvd.h"

namespace hvd::mxnet {
namespace {

enum TypeCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4 };

// -1: the core does not know it. MXNet calls a bool an unsigned integer of one bit.
int32_t dtype_of(const DlTensor& tensor) {
  if (tensor.type_lanes != 1) return -1;
  switch (tensor.type_code * 256 + tensor.type_bits) {
    case kInt * 256 + 8:
      return HVD_INT8;
    case kInt * 256 + 32:
      return HVD_INT32;
    case kInt * 256 + 64:
      return HVD_INT64;
    case kUint * 256 + 1:
      return HVD_BOOL;
    case kUint * 256 + 8:
      return HVD_UINT8;
    case kFloat * 256 + 16:
      return HVD_FLOAT16;
    case kFloat * 256 + 32:
      return HVD_FLOAT32;
    case kFloat * 256 + 64:
      return HVD_FLOAT64;
    case kBfloat * 256 + 16:
      return HVD_BFLOAT16;
    default:
      return -1;
  }
}

// MXNet's text has a stack trace behind the first line.
std::string last_error() {
  const std::string text = api().MXGetLastError();
  return text.substr(0, text.find('\n'));
}

}  // namespace

Array::Array(Handle handle) {
  if (api().MXShallowCopyNDArray(handle, &handle_) != 0) handle_ = nullptr;
}

Array::~Array() {
  if (handle_ != nullptr) api().MXNDArrayFree(handle_);
}

Array::Array(Array&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

std::string Array::look(View& view) const {
  DlTensor* tensor = nullptr;
  if (api().MXNDArrayToDLPack(handle_, &tensor) != 0) {
    return "the array is in a layout of oneDNN, or has no memory (" + last_error() +
           "); use x[:] = hvd.allreduce(x) in place of hvd.allreduce_(x)";
  }
  view.data = static_cast<char*>(tensor->data) + tensor->byte_offset;
  view.dtype = dtype_of(*tensor);
  view.shape.assign(tensor->shape, tensor->shape + tensor->ndim);
  const std::string type =
      std::to_string(tensor->type_code) + "/" + std::to_string(tensor->type_bits);
  api().MXNDArrayCallDLPackDeleter(tensor);
  if (view.dtype >= 0) return {};
  return "the array has a dtype that the core does not know (DLPack " + type + ")";
}

}  // namespace hvd::mxnet
