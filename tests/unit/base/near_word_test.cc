#include "base/near_word.h"

#include <gtest/gtest.h>

#include <string_view>

namespace hvd {
namespace {

constexpr std::string_view kKnown[] = {"--verbose", "--stall-check-warning-time-seconds",
                                       "--autotune-bayes-opt-max-samples", "--tcp"};

TEST(NearWord, IsTheKnownWordAFewEditsAway) {
  EXPECT_EQ(near_word("--verbsoe", kKnown), "--verbose");
  EXPECT_EQ(near_word("-verbos", kKnown), "--verbose");
  EXPECT_EQ(near_word("--stall-check-warn-time-second", kKnown),
            "--stall-check-warning-time-seconds");
}

TEST(NearWord, DoesNotMindUnderscoresAndCapitals) {
  EXPECT_EQ(near_word("--autotune_bayes_opt_max_samples", kKnown),
            "--autotune-bayes-opt-max-samples");
  EXPECT_EQ(near_word("--VERBOSE", kKnown), "--verbose");
}

TEST(NearWord, IsNoneIfNothingIsNear) {
  EXPECT_EQ(near_word("--hosts", kKnown), "");
  EXPECT_EQ(near_word("-x", kKnown), "") << "every short word is a few edits from every other";
  EXPECT_EQ(near_word("", kKnown), "");
  EXPECT_EQ(near_word("--verbose", {}), "");
}

TEST(NearWord, IsAskedFor) {
  EXPECT_EQ(near_word_text("--verbsoe", kKnown), ": did you mean '--verbose'?");
  EXPECT_EQ(near_word_text("--hosts", kKnown), "");
}

}  // namespace
}  // namespace hvd
