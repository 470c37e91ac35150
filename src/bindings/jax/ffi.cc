#include "bindings/jax/ffi.h"

namespace hvd::jax {
namespace {

enum Code : int {
  kUnknown = 2,
  kInvalidArgument = 3,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
};

int code_of(hvd_status status) {
  switch (status) {
    case HVD_PRECONDITION_ERROR:
      return kFailedPrecondition;
    case HVD_ABORTED:
      return kAborted;
    case HVD_INVALID_ARGUMENT:
      return kInvalidArgument;
    case HVD_OUT_OF_MEMORY:
      return kResourceExhausted;
    default:
      return kUnknown;  // lost peers, shutdown, stalls
  }
}

}  // namespace

Error* make_error(const Api& api, hvd_status status, const std::string& message) {
  ErrorCreate arguments{sizeof(ErrorCreate), nullptr, message.c_str(), code_of(status)};
  return api.error_create(&arguments);
}

int32_t dtype_of(int xla_dtype) {
  switch (xla_dtype) {
    case 1:
      return HVD_BOOL;
    case 2:
      return HVD_INT8;
    case 3:
      return HVD_INT16;
    case 4:
    case 8:  // unsigned
      return HVD_INT32;
    case 5:
    case 9:  // unsigned
      return HVD_INT64;
    case 6:
    case 19:  // kinds of float8
    case 20:
    case 23:
    case 24:
    case 25:
    case 28:
    case 29:
    case 33:
      return HVD_UINT8;
    case 7:
      return HVD_UINT16;
    case 10:
      return HVD_FLOAT16;
    case 11:
      return HVD_FLOAT32;
    case 12:
      return HVD_FLOAT64;
    case 16:
      return HVD_BFLOAT16;
    default:
      return -1;
  }
}

}  // namespace hvd::jax
