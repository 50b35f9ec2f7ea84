#include "muster/base/text/one_line.h"

#include <gtest/gtest.h>

namespace muster::one_line_test {
namespace {

TEST(OneLine, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(OneLine("a\nb\t\x1b[1m\x7f"), "a\\x0ab\\x09\\x1b[1m\\x7f");
  EXPECT_EQ(OneLine(std::string_view("\0", 1)), "\\x00");
}

TEST(OneLine, OnlyTheBeginningOfALongTextIsShown) {
  EXPECT_EQ(OneLine("abc", 3), "abc");
  EXPECT_EQ(OneLine("ab\ncd", 3), "ab\\x0a…");
}

TEST(OneLine, TheRestStays) {
  EXPECT_EQ(OneLine("Köln \"x\" \\n"), "Köln \"x\" \\n");
  EXPECT_EQ(OneLine(""), "");
}

}  // namespace
}  // namespace muster::one_line_test
