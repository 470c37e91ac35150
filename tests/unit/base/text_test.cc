#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hvd {
namespace {

TEST(Text, ConcatJoinsPartsOfAnyType) {
  const char* pointer = "pointer";
  const std::string text = "text";

  EXPECT_EQ(concat("rank ", 3, " sent ", text, ' ', pointer), "rank 3 sent text pointer");
  EXPECT_EQ(concat(true, ' ', false), "true false");
  EXPECT_EQ(concat(), "");
}

// A literal converts to bool more readily than to a string_view.
TEST(Text, ConcatTakesALiteralForTextNotForABool) { EXPECT_EQ(concat("a", "b"), "ab"); }

TEST(Text, ConcatWritesNumbersInFull) {
  EXPECT_EQ(concat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(concat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(concat(uint8_t{65}), "65");
  EXPECT_EQ(concat(0.1), "0.1");
  EXPECT_EQ(concat(1e300), "1e+300");
}

TEST(Text, JoinSeparatesItems) {
  EXPECT_EQ(join_text(std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(join_text(std::vector<std::string>{"a", "b"}, "+"), "a+b");
  EXPECT_EQ(join_text(std::vector<int>{}), "");
}

TEST(Text, JoinStopsAtMost) {
  EXPECT_EQ(join_text(std::vector<int>{1, 2, 3}, ", ", 2), "1, 2 ...");
  EXPECT_EQ(join_text(std::vector<int>{1, 2}, ", ", 2), "1, 2");
}

}  // namespace
}  // namespace hvd
