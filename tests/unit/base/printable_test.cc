#include "base/printable.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(Printable, LeavesWordsAlone) {
  for (const char* text : {"", "plain words\nand lines\twith tabs", "Größe 3 µs, 日本語"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("\x1b[2J\rgone"), "\\x1b[2J\\x0dgone");
  EXPECT_EQ(printable("\x7f\x08"), "\\x7f\\x08");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // CSI as one character
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

}  // namespace
}  // namespace hvd
