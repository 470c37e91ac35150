#include "bindings/tensorflow/status.h"

namespace hvd::tensorflow {

Code code_of(hvd_status status) {
  switch (status) {
    case HVD_OK:
      return kOk;
    case HVD_PRECONDITION_ERROR:
      return kFailedPrecondition;
    case HVD_ABORTED:
      return kAborted;
    case HVD_INVALID_ARGUMENT:
      return kInvalidArgument;
    case HVD_OUT_OF_MEMORY:
      return kResourceExhausted;
    default:
      // Lost peers, shutdown, stalls: elastic programs look for UnknownError.
      return kUnknown;
  }
}

int32_t dtype_of(int tensorflow_dtype) {
  switch (tensorflow_dtype) {
    case kUint8:
      return HVD_UINT8;
    case kInt8:
      return HVD_INT8;
    case kUint16:
      return HVD_UINT16;
    case kInt16:
      return HVD_INT16;
    case kInt32:
      return HVD_INT32;
    case kInt64:
      return HVD_INT64;
    case kHalf:
      return HVD_FLOAT16;
    case kFloat:
      return HVD_FLOAT32;
    case kDouble:
      return HVD_FLOAT64;
    case kBool:
      return HVD_BOOL;
    case kBfloat16:
      return HVD_BFLOAT16;
    default:
      return -1;
  }
}

}  // namespace hvd::tensorflow
