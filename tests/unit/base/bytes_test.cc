#include "base/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hvd {
namespace {

TEST(Bytes, CheckedArithmeticGivesExactResults) {
  EXPECT_EQ(checked_mul(6, 7), 42u);
  EXPECT_EQ(checked_mul(0, UINT64_MAX), 0u);
  EXPECT_EQ(checked_mul(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(checked_add(UINT64_MAX - 1, 1), UINT64_MAX);
}

TEST(Bytes, CheckedArithmeticNoticesOverflow) {
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(UINT64_MAX, 2), std::nullopt);
  EXPECT_EQ(checked_add(UINT64_MAX, 1), std::nullopt);
}

TEST(Bytes, AlignUpGivesTheNextMultiple) {
  EXPECT_EQ(align_up(0, 64), 0u);
  EXPECT_EQ(align_up(1, 64), 64u);
  EXPECT_EQ(align_up(64, 64), 64u);
  EXPECT_EQ(align_up(65, 64), 128u);
  EXPECT_EQ(align_up(10, 3), 12u);
}

}  // namespace
}  // namespace hvd
