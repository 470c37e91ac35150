#include "collective/adasum.h"

#include <gtest/gtest.h>

namespace hvd::collective {
namespace {

TEST(AdasumLevels, PowersOfTwoMeetByDoublingDistance) {
  EXPECT_EQ(adasum_levels(4), (std::vector<AdasumLevel>{{{0, 1}, {2, 3}}, {{0, 2}}}));
  EXPECT_TRUE(adasum_levels(1).empty());
}

TEST(AdasumLevels, RanksBeyondAPowerOfTwoFoldInFirst) {
  EXPECT_EQ(adasum_levels(3), (std::vector<AdasumLevel>{{{0, 2}}, {{0, 1}}}));
  EXPECT_EQ(adasum_levels(6),
            (std::vector<AdasumLevel>{{{0, 4}, {1, 5}}, {{0, 1}, {2, 3}}, {{0, 2}}}));
}

TEST(AdasumWeights, OrthogonalVectorsAddAndEqualOnesAverage) {
  const double orthogonal[3] = {0, 2, 3};
  EXPECT_EQ(adasum_weights(orthogonal).left, 1.0);
  const double equal[3] = {4, 4, 4};
  EXPECT_EQ(adasum_weights(equal).left, 0.5);
  EXPECT_EQ(adasum_weights(equal).right, 0.5);
}

TEST(AdasumWeights, AZeroVectorCountsAsItIs) {
  const double zero[3] = {0, 0, 5};
  EXPECT_EQ(adasum_weights(zero).left, 1.0);
  EXPECT_EQ(adasum_weights(zero).right, 1.0);
}

TEST(AdasumLoad, RoundsWhatIsPrescaledToItsTypeBeforeItIsWidened) {
  constexpr size_t kCount = 3001;  // several blocks
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    Numeric numeric;
    numeric.dtype = numeric.slot_dtype = dtype;
    numeric.pre = Scale{0.3, 1};
    std::vector<uint16_t> in, rounded(kCount);
    for (size_t i = 0; i < kCount; ++i) in.push_back(static_cast<uint16_t>(0x3c00 + i % 1000));
    kernels().scale(dtype, rounded.data(), in.data(), kCount, numeric.pre);
    std::vector<float> expected(kCount), loaded(kCount);
    kernels().widen(dtype, expected.data(), rounded.data(), kCount, Scale{});

    adasum_load(numeric, reinterpret_cast<std::byte*>(loaded.data()),
                reinterpret_cast<const std::byte*>(in.data()), kCount);

    EXPECT_EQ(loaded, expected);
  }
}

}  // namespace
}  // namespace hvd::collective
