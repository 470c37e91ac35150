// dtype.h - element types and reduction operations with their public codes.
// Codes 0..9 are those of the original; bfloat16 has the next free one. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hvd {

enum class DType : uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,
  kBfloat16 = 10,
};
inline constexpr int kDTypeCount = 11;

enum class ReduceOp : uint8_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};
inline constexpr int kReduceOpCount = 6;

constexpr size_t dtype_bytes(DType dtype) {
  constexpr uint8_t kBytes[kDTypeCount] = {1, 1, 2, 2, 4, 8, 2, 4, 8, 1, 2};
  return kBytes[static_cast<int>(dtype)];
}
constexpr bool is_floating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64 ||
         dtype == DType::kBfloat16;
}
std::string_view dtype_name(DType dtype);      // "float32"
std::string_view reduce_op_name(ReduceOp op);  // "Sum"
std::optional<DType> dtype_from_code(int64_t code);
std::optional<ReduceOp> reduce_op_from_code(int64_t code);

}  // namespace hvd
