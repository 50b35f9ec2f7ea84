#include "muster/launch/watch/live_text.h"

#include <gtest/gtest.h>

namespace muster::live_text_test {
namespace {

TEST(LiveText, DrawsOverWhatItHasDrawn) {
  LiveText text;
  EXPECT_EQ(text.Draw({"one", "two"}, {}), "\x1b[?25l\x1b[Kone\n\x1b[Ktwo\n\x1b[J");
  EXPECT_EQ(text.Draw({"three"}, {}), "\r\x1b[2A\x1b[Kthree\n\x1b[J");
  EXPECT_EQ(text.Draw({}, {}), "\r\x1b[1A\x1b[J");
  EXPECT_EQ(text.Draw({"four"}, {}), "\x1b[Kfour\n\x1b[J");
}

TEST(LiveText, CutsAtTheWidthAndAtTheHeight) {
  LiveText text;
  EXPECT_EQ(text.Draw({"abcdef", "größer"}, {.columns = 4, .rows = 9}),
            "\x1b[?25l\x1b[K"
            "abcd\n\x1b[Kgröß\n\x1b[J");
  LiveText low;
  EXPECT_EQ(low.Draw({"1", "2", "3", "4"}, {.columns = 80, .rows = 4}),
            "\x1b[?25l\x1b[K1\n\x1b[K2\n\x1b[K… 2 more\n\x1b[J");
  EXPECT_EQ(low.Draw({"1"}, {.columns = 80, .rows = 4}), "\r\x1b[3A\x1b[K1\n\x1b[J");
}

TEST(LiveText, AnotherSizeClearsTheTerminal) {
  LiveText text;
  text.Draw({"one"}, {.columns = 80, .rows = 24});
  EXPECT_EQ(text.Draw({"one"}, {.columns = 40, .rows = 24}), "\x1b[H\x1b[2J\x1b[Kone\n\x1b[J");
  EXPECT_EQ(text.Draw({"one"}, {.columns = 40, .rows = 24}), "\r\x1b[1A\x1b[Kone\n\x1b[J");
}

TEST(LiveText, EndBringsTheCursorBackOnce) {
  LiveText text;
  EXPECT_EQ(text.End(), "");
  text.Draw({"one"}, {});
  EXPECT_EQ(text.End(), "\x1b[?25h");
  EXPECT_EQ(text.End(), "");
}

TEST(LiveText, CutAtCountsCharacters) {
  EXPECT_EQ(CutAt("größe", 3), "grö");
  EXPECT_EQ(CutAt("größe", 9), "größe");
  EXPECT_EQ(CutAt("größe", 0), "");
}

}  // namespace
}  // namespace muster::live_text_test
