#include "base/dtype.h"

namespace hvd {

std::string_view dtype_name(DType dtype) {
  constexpr std::string_view kNames[kDTypeCount] = {"uint8",   "int8",  "uint16",  "int16",
                                                    "int32",   "int64", "float16", "float32",
                                                    "float64", "bool",  "bfloat16"};
  return kNames[static_cast<int>(dtype)];
}

std::string_view reduce_op_name(ReduceOp op) {
  constexpr std::string_view kNames[kReduceOpCount] = {"Average", "Sum", "Adasum",
                                                       "Min",     "Max", "Product"};
  return kNames[static_cast<int>(op)];
}

std::optional<DType> dtype_from_code(int64_t code) {
  if (code < 0 || code >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(code);
}

std::optional<ReduceOp> reduce_op_from_code(int64_t code) {
  if (code < 0 || code >= kReduceOpCount) return std::nullopt;
  return static_cast<ReduceOp>(code);
}

}  // namespace hvd
