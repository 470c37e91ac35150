#include "launch/output/line_prefixer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/output/output_tail.h"

namespace hvd::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string prefixed(const std::vector<std::string>& chunks) {
  LinePrefixer prefixer("L:");
  std::string out;
  for (const std::string& chunk : chunks) prefixer.feed(chunk, "", out);
  prefixer.finish("", out);
  return out;
}

TEST(LinePrefixer, LabelNamesRankAndStream) {
  EXPECT_EQ(line_label(12, "stderr"), "[12]<stderr>:");
}

struct Case {
  std::vector<std::string> chunks;
  std::string out;
};

TEST(LinePrefixer, PutsTheLabelBeforeEachLine) {
  const std::vector<Case> cases = {
      {{}, ""},
      {{""}, ""},
      {{"a\nb\n"}, "L:a\nL:b\n"},
      {{"a", "b", "\nc", "d\n"}, "L:ab\nL:cd\n"},
      {{"\n\n"}, "L:\nL:\n"},
      {{"no newline"}, "L:no newline\n"},
      {{"a\nrest"}, "L:a\nL:rest\n"},
      {{"10%\r20%\rdone\n"}, "L:10%\rL:20%\rL:done\n"},
      {{"10%\r", "20%\r"}, "L:10%\rL:20%\r"},
      {{"dos\r\nlines\r\n"}, "L:dos\r\nL:lines\r\n"},
      {{"cut\r", "\nhere\n"}, "L:cut\r\nL:here\n"},
      {{"a\n\rb\n"}, "L:a\nL:\rL:b\n"},
      {{std::string("nul\0byte\n", 9)}, std::string("L:nul\0byte\n", 11)},
  };
  for (const Case& c : cases) EXPECT_EQ(prefixed(c.chunks), c.out);
}

TEST(LinePrefixer, ShowsALineOnlyWhenItIsComplete) {
  LinePrefixer prefixer("L:");
  std::string out;

  prefixer.feed("half", "", out);

  EXPECT_THAT(out, IsEmpty());
}

TEST(LinePrefixer, StampComesFirst) {
  LinePrefixer prefixer("L:");
  std::string out;

  prefixer.feed("a\nb", "T1", out);
  prefixer.finish("T2", out);

  EXPECT_EQ(out, "T1L:a\nT2L:b\n");
}

TEST(LinePrefixer, CutsALineThatNeverEnds) {
  LinePrefixer prefixer("");
  std::string out;
  const std::string endless(3 * LinePrefixer::kMaxLineBytes + 5, 'x');

  prefixer.feed(endless, "", out);
  prefixer.finish("", out);

  EXPECT_EQ(out.size(), endless.size() + 4);
  EXPECT_EQ(out[LinePrefixer::kMaxLineBytes], '\n');
}

TEST(OutputTail, KeepsTheLastLines) {
  OutputTail tail;

  tail.append("a\nb\n");
  tail.append("c\rd\n\n\n");

  EXPECT_THAT(tail.last_lines(3), ElementsAre("b", "c", "d"));
  EXPECT_THAT(tail.last_lines(10), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(OutputTail().last_lines(10), IsEmpty());
}

TEST(OutputTail, StaysSmallHoweverMuchIsPrinted) {
  OutputTail tail;
  for (int i = 0; i < 100000; ++i) tail.append("line " + std::to_string(i) + "\n");
  tail.append(std::string(5 * OutputTail::kMaxBytes, 'y') + "\nlast\n");

  const auto lines = tail.last_lines(10);

  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].substr(0, 5), "...yy");
  EXPECT_LE(lines[0].size(), OutputTail::kMaxBytes + 3);
  EXPECT_EQ(lines[1], "last");
}

}  // namespace
}  // namespace hvd::launch
