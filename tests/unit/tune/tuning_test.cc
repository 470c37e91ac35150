#include "tune/tuning.h"

#include <gmock/gmock.h>

#include <random>

namespace hvd::tune {
namespace {

using ::testing::HasSubstr;

Tuning random_tuning(std::mt19937_64& random) {
  Tuning tuning;
  for (size_t k = 0; k < kKnobCount; ++k) {
    const KnobInfo& info = info_of(static_cast<Knob>(k));
    tuning.levels[k] = static_cast<uint8_t>(random() % info.level_count());
  }
  return tuning;
}

TEST(Tuning, IsTheSameAfterCodeAndText) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Tuning tuning = random_tuning(random);

    const auto decoded = decode(encode(tuning));
    const auto parsed = tuning == Tuning{} ? tuning : *parse_tuning(to_text(tuning));

    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, tuning);
    EXPECT_EQ(parsed, tuning);
  }
}

TEST(Tuning, HasTheCodeZeroWhereEverythingIsAutomatic) {
  EXPECT_EQ(encode(Tuning{}), 0u);
  EXPECT_EQ(to_text(Tuning{}), "automatic");
}

TEST(Tuning, RefusesCodesThatNoRankCanHaveMade) {
  int refused = 0;
  std::mt19937_64 random(2);
  for (int i = 0; i < 10000; ++i) {
    const auto code = static_cast<uint32_t>(random());
    const auto tuning = decode(code);
    if (tuning) {
      EXPECT_EQ(encode(*tuning), code);
    } else {
      EXPECT_EQ(tuning.status().code(), StatusCode::kCorrupted);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(decode(1u << kCodeBits));
}

TEST(Tuning, SaysWhatItExpectedOfATextThatItCannotRead) {
  EXPECT_THAT(parse_tuning("chunk_bytes=5").status().message(),
              HasSubstr("chunk_bytes: expected one of auto, 16384, "));
  EXPECT_THAT(parse_tuning("speed=9").status().message(), HasSubstr("got 'speed=9'"));
  EXPECT_THAT(parse_tuning("spin_count").status().message(), HasSubstr("got 'spin_count'"));
}

TEST(Tuning, LeavesOutWhatIsAutomatic) {
  const auto tuning = parse_tuning("pace=deep, spin_count=auto\n small_bytes=8192");

  ASSERT_TRUE(tuning) << tuning.status().message();
  EXPECT_EQ(to_text(*tuning), "small_bytes=8192 pace=deep");
  EXPECT_EQ(tuning->value(Knob::kSmallBytes), 8192);
  EXPECT_EQ(tuning->value_or(Knob::kSpinCount, 77), 77);
}

}  // namespace
}  // namespace hvd::tune
