#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "horovod/hvd.h"

namespace hvd {
namespace {

struct DTypeRow {
  DType dtype;
  hvd_dtype code;
  const char* name;
  size_t bytes;
  bool floating;
};

constexpr DTypeRow kDTypes[] = {
    {DType::kUint8, HVD_UINT8, "uint8", 1, false},
    {DType::kInt8, HVD_INT8, "int8", 1, false},
    {DType::kUint16, HVD_UINT16, "uint16", 2, false},
    {DType::kInt16, HVD_INT16, "int16", 2, false},
    {DType::kInt32, HVD_INT32, "int32", 4, false},
    {DType::kInt64, HVD_INT64, "int64", 8, false},
    {DType::kFloat16, HVD_FLOAT16, "float16", 2, true},
    {DType::kFloat32, HVD_FLOAT32, "float32", 4, true},
    {DType::kFloat64, HVD_FLOAT64, "float64", 8, true},
    {DType::kBool, HVD_BOOL, "bool", 1, false},
    {DType::kBfloat16, HVD_BFLOAT16, "bfloat16", 2, true},
};

TEST(DTypes, HaveTheirPublicCodesNamesAndSizes) {
  static_assert(std::size(kDTypes) == kDTypeCount);
  for (const DTypeRow& row : kDTypes) {
    EXPECT_EQ(static_cast<int>(row.dtype), static_cast<int>(row.code)) << row.name;
    EXPECT_EQ(dtype_name(row.dtype), row.name);
    EXPECT_EQ(dtype_bytes(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(is_floating(row.dtype), row.floating) << row.name;
    EXPECT_EQ(dtype_from_code(row.code), row.dtype) << row.name;
  }
}

TEST(DTypes, RefuseCodesThatDoNotExist) {
  for (const int64_t code : {int64_t{-1}, int64_t{kDTypeCount}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(dtype_from_code(code), std::nullopt) << code;
  }
}

struct OpRow {
  ReduceOp op;
  hvd_reduce_op code;
  const char* name;
};

constexpr OpRow kOps[] = {
    {ReduceOp::kAverage, HVD_OP_AVERAGE, "Average"},
    {ReduceOp::kSum, HVD_OP_SUM, "Sum"},
    {ReduceOp::kAdasum, HVD_OP_ADASUM, "Adasum"},
    {ReduceOp::kMin, HVD_OP_MIN, "Min"},
    {ReduceOp::kMax, HVD_OP_MAX, "Max"},
    {ReduceOp::kProduct, HVD_OP_PRODUCT, "Product"},
};

TEST(ReduceOps, HaveTheirPublicCodesAndNames) {
  static_assert(std::size(kOps) == kReduceOpCount);
  for (const OpRow& row : kOps) {
    EXPECT_EQ(static_cast<int>(row.op), static_cast<int>(row.code)) << row.name;
    EXPECT_EQ(reduce_op_name(row.op), row.name);
    EXPECT_EQ(reduce_op_from_code(row.code), row.op) << row.name;
  }
}

TEST(ReduceOps, RefuseCodesThatDoNotExist) {
  EXPECT_EQ(reduce_op_from_code(-1), std::nullopt);
  EXPECT_EQ(reduce_op_from_code(kReduceOpCount), std::nullopt);
}

}  // namespace
}  // namespace hvd
