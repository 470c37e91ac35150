#include "base/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace hvd {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kWords[] = {"red", "green", "blue"};

TEST(ParseInteger, TakesWhatStrtolTakesInFull) {
  EXPECT_EQ(*parse_integer("42"), 42);
  EXPECT_EQ(*parse_integer("-1"), -1);
  EXPECT_EQ(*parse_integer("+7"), 7);
  EXPECT_EQ(*parse_integer("007"), 7);
  EXPECT_EQ(*parse_integer(" \t5 \n"), 5);
  EXPECT_EQ(*parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(*parse_integer("-9223372036854775808"), INT64_MIN);
}

TEST(ParseInteger, RefusesAnythingElse) {
  for (const char* text :
       {"", " ", "true", "1.5", "64MB", "0x10", "1 2", "+-1", "++1", "+", "-", "--1"}) {
    const auto value = parse_integer(text);
    ASSERT_FALSE(value.is_ok()) << text;
    EXPECT_EQ(value.status(),
              invalid_argument(std::string("expected an integer, got '") + text + "'"));
  }
}

TEST(ParseInteger, SaysWhichRangeWasExpected) {
  EXPECT_EQ(parse_integer("-1", {.least = 0}).status().message(),
            "expected an integer of 0 or more, got '-1'");
  EXPECT_EQ(parse_integer("9", {1, 8}).status().message(),
            "expected an integer from 1 to 8, got '9'");
  EXPECT_EQ(parse_integer("9", {.most = 8}).status().message(),
            "expected an integer of 8 or less, got '9'");
  EXPECT_EQ(parse_integer("99999999999999999999").status().message(),
            "expected an integer, got '99999999999999999999'");
}

TEST(ParseInteger, QuotesOnlyTheBeginningOfALongText) {
  const auto value = parse_integer(std::string(1000, 'x'));

  EXPECT_EQ(value.status().message(),
            "expected an integer, got '" + std::string(120, 'x') + "...'");
}

TEST(ParseDecimal, TakesFiniteNumbers) {
  EXPECT_EQ(*parse_decimal("3.5"), 3.5);
  EXPECT_EQ(*parse_decimal(" 1e-3"), 1e-3);
  EXPECT_EQ(*parse_decimal("+2"), 2.0);
  EXPECT_EQ(*parse_decimal("-0.25"), -0.25);
  EXPECT_EQ(*parse_decimal(".5"), 0.5);
}

TEST(ParseDecimal, RefusesAnythingElse) {
  for (const char* text : {"", "x", "1,5", "(None,)", "1ms", "inf", "-inf", "nan", "1e999"}) {
    EXPECT_FALSE(parse_decimal(text).is_ok()) << text;
  }
  EXPECT_EQ(parse_decimal("-1", {.least = 0}).status().message(),
            "expected a number of 0 or more, got '-1'");
}

TEST(ParseIntegerList, TakesIntegersSeparatedByCommas) {
  EXPECT_THAT(*parse_integer_list("3"), ElementsAre(3));
  EXPECT_THAT(*parse_integer_list("0, 2 ,4"), ElementsAre(0, 2, 4));
}

TEST(ParseIntegerList, RefusesHolesAndNegatives) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "-1", "1;2", "1,4294967296"}) {
    EXPECT_FALSE(parse_integer_list(text).is_ok()) << text;
  }
  EXPECT_EQ(parse_integer_list("1,x").status().message(),
            "expected integers of 0 or more separated by commas, got '1,x'");
}

TEST(ParseChoice, IgnoresCaseAndBlanksAround) {
  EXPECT_EQ(*parse_choice("green", kWords), 1u);
  EXPECT_EQ(*parse_choice(" BLUE ", kWords), 2u);
}

TEST(ParseChoice, NamesTheChoicesWhenNoneFits) {
  EXPECT_EQ(parse_choice("gree", kWords).status().message(),
            "expected red, green or blue, got 'gree': did you mean 'green'?");
  EXPECT_EQ(parse_choice("loud", kWords).status().message(),
            "expected red, green or blue, got 'loud'");
  EXPECT_FALSE(parse_choice("", kWords).is_ok());
}

TEST(Trim, RemovesBlanksAtBothEnds) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \t "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Blame, PutsTheNameInFront) {
  EXPECT_EQ(blame("HOROVOD_RANK", invalid_argument("bad")), invalid_argument("HOROVOD_RANK: bad"));
}

}  // namespace
}  // namespace hvd
