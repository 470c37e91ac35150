#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hvd {
namespace {

std::string literal_of(std::string_view text) {
  std::string out;
  append_json_string(out, text, BadBytes::kReplace);
  return out;
}

TEST(JsonText, QuotesPlainTextAsItIs) {
  EXPECT_EQ(literal_of(""), R"("")");
  EXPECT_EQ(literal_of("conv1.weight"), R"("conv1.weight")");
}

TEST(JsonText, EscapesWhatJsonDoesNotAllow) {
  EXPECT_EQ(literal_of("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(literal_of("\n\t\x7F"), R"("\n\u0009\u007f")");
  EXPECT_EQ(literal_of(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonText, KeepsValidUtf8) {
  const std::string text = "\u00e9 \u20ac \U0001F600";

  EXPECT_EQ(literal_of(text), '"' + text + '"');
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  const std::string bad = "\uFFFD";
  const std::pair<std::string_view, std::string> rows[] = {
      {"a\xFFz", "a" + bad + "z"},                  // never a first byte
      {"\x80", bad},                                // continuation without a start
      {"\xC3", bad},                                // cut off
      {"\xE2\x82", bad + bad},                      // cut off
      {"\xC0\xAF", bad + bad},                      // overlong
      {"\xE0\x80\x80", bad + bad + bad},            // overlong
      {"\xED\xA0\x80", bad + bad + bad},            // surrogate
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // above U+10FFFF
      {"\xC3\"", bad + "\\\""},                     // a quote is not swallowed
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(literal_of(text), '"' + expected + '"');
}

TEST(JsonText, KeepsBytesThatAreNotUtf8AsLoneSurrogates) {
  EXPECT_EQ(json_string("bad\xFF\xC3"), R"("bad\udcff\udcc3")");
}

TEST(JsonText, PutsObjectsTogether) {
  const std::string names[] = {"a", "b\"c"};

  EXPECT_EQ(JsonObject().add("n", "1").add("list", json_strings(names)).text(),
            R"({"n": 1, "list": ["a", "b\"c"]})");
}

TEST(JsonText, IsValidJsonForEveryPairOfBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_TRUE(nlohmann::json::accept(literal_of(text))) << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace hvd
