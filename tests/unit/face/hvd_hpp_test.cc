// What the C++ face promises without any peer: types, ownership and errors, in a job of one rank.
#include "horovod/hvd.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <type_traits>
#include <vector>

namespace {

horovod::SessionOptions alone() {
  horovod::SessionOptions options;
  options.topology = {0, 1, 0, 1, 0, 1};
  options.job_id = "face-" + std::to_string(::getpid());
  return options;
}

TEST(Face, KnowsTheDtypeOfEveryCppType) {
  static_assert(horovod::dtype_of_v<float> == HVD_FLOAT32);
  static_assert(horovod::dtype_of_v<double> == HVD_FLOAT64);
  static_assert(horovod::dtype_of_v<const int8_t> == HVD_INT8);
  static_assert(horovod::dtype_of_v<uint8_t> == HVD_UINT8);
  static_assert(horovod::dtype_of_v<int16_t> == HVD_INT16);
  static_assert(horovod::dtype_of_v<uint16_t> == HVD_UINT16);
  static_assert(horovod::dtype_of_v<int32_t> == HVD_INT32);
  static_assert(horovod::dtype_of_v<int64_t> == HVD_INT64);
  static_assert(horovod::dtype_of_v<long long> == HVD_INT64);
  static_assert(horovod::dtype_of_v<bool> == HVD_BOOL);
  static_assert(horovod::dtype_of_v<horovod::float16> == HVD_FLOAT16);
  static_assert(horovod::dtype_of_v<horovod::bfloat16> == HVD_BFLOAT16);
  static_assert(!horovod::is_dtype_v<uint32_t>);
  static_assert(!horovod::is_dtype_v<long double>);
  static_assert(sizeof(horovod::float16) == 2 && sizeof(horovod::bfloat16) == 2);
}

TEST(Face, OwnersMoveAndDontCopy) {
  static_assert(!std::is_copy_constructible_v<horovod::Session>);
  static_assert(!std::is_copy_constructible_v<horovod::Future<void>>);
  static_assert(std::is_nothrow_move_constructible_v<horovod::Future<void>>);
  static_assert(!std::is_copy_constructible_v<horovod::Prepared>);
  static_assert(std::is_nothrow_move_constructible_v<horovod::Prepared>);
  static_assert(!std::is_copy_constructible_v<horovod::SharedBuffer<float>>);
  static_assert(std::is_nothrow_move_constructible_v<horovod::SharedBuffer<float>>);
}

TEST(Face, CallsWithoutASessionThrow) {
  std::vector<float> values(3);

  try {
    horovod::allreduce(values);
    FAIL() << "expected an exception";
  } catch (const horovod::Error& error) {
    EXPECT_EQ(error.status(), HVD_PRECONDITION_ERROR);
    EXPECT_STRNE(error.what(), "");
  }
}

TEST(Face, ASessionEndsWithItsScope) {
  {
    const horovod::Session session(alone());
    EXPECT_EQ(session.rank(), 0);
    EXPECT_EQ(session.size(), 1);
    EXPECT_EQ(hvd_is_initialized(), 1);
  }
  EXPECT_EQ(hvd_is_initialized(), 0);
}

TEST(Face, RowsMustBeWhole) {
  const horovod::Session session(alone());
  const std::vector<float> values(7);

  EXPECT_THROW(horovod::allgather(values, 2), horovod::Error);
  EXPECT_THROW(horovod::allgather(values, 0), horovod::Error);
  EXPECT_EQ(horovod::allgather(values, 7).rows, 1);
}

TEST(Face, AMovedFutureOwnsTheOperation) {
  const horovod::Session session(alone());
  std::vector<float> values(3, 1.0f);
  horovod::Future<void> first = horovod::allreduce_async(values);

  horovod::Future<void> second = std::move(first);

  EXPECT_FALSE(first.valid());
  EXPECT_TRUE(second.valid());
  second.get();
  EXPECT_FALSE(second.valid());
}

TEST(Face, SharedBuffersAreZeroedAlignedAndMovable) {
  const horovod::Session session(alone());
  horovod::SharedBuffer<double> buffer(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
  for (const double value : buffer) EXPECT_EQ(value, 0.0);
  EXPECT_EQ(hvd_buffer_contains(buffer.data(), buffer.size() * sizeof(double)), 1);

  horovod::SharedBuffer<double> moved = std::move(buffer);

  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(moved.size(), 1000u);
  EXPECT_EQ(moved.span().size(), 1000u);
  EXPECT_THROW(horovod::SharedBuffer<double>(SIZE_MAX / 4), horovod::Error);
}

}  // namespace
