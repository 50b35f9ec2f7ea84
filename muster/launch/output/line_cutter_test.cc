#include "muster/launch/output/line_cutter.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace muster::line_cutter_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Cut(const std::vector<std::string>& pieces, size_t max_line_bytes = 100) {
  LineCutter cutter(max_line_bytes);
  std::vector<std::string> lines;
  const auto take = [&lines](std::string_view line) { lines.emplace_back(line); };
  for (const std::string& piece : pieces) cutter.Add(piece, take);
  cutter.Finish(take);
  return lines;
}

TEST(LineCutter, LinesAreWhatStandsBetweenLineEnds) {
  EXPECT_THAT(Cut({"a\nb\n", "\n"}), ElementsAre("a", "b", ""));
  EXPECT_THAT(Cut({"a", "b\nc", "", "d"}), ElementsAre("ab", "cd"));
  EXPECT_THAT(Cut({}), ElementsAre());
}

TEST(LineCutter, CarriageReturnsBeforeALineEndAreDropped) {
  EXPECT_THAT(Cut({"a\r\nb\r\r\n", "c\r", "\n", "\r\n", "d\r"}), ElementsAre("a", "b", "c", "", "d"));
}

TEST(LineCutter, OfALineThatIsOverwrittenTheLastStateIsKept) {
  EXPECT_THAT(Cut({"a\rb\rc\n"}), ElementsAre("c"));
  EXPECT_THAT(Cut({"\r 1%", "\r 2%\r 3%", "\r 4", "%\n", "next\n"}), ElementsAre(" 4%", "next"));
  EXPECT_THAT(Cut({"1%\r", "2%\r", "3%\r", "\n"}), ElementsAre("3%"));
  EXPECT_THAT(Cut({"\r1%", "\r2%"}), ElementsAre("2%")) << "also at the end of the output";
  EXPECT_THAT(Cut({"abc", "\rdef", "\rghi\n"}, 3), ElementsAre("ghi")) << "what is overwritten doesn't add up";
}

TEST(LineCutter, ShowsWhatStandsInALineThatIsBeingOverwritten) {
  LineCutter cutter;
  const auto after = [&cutter](std::string_view bytes) {
    cutter.Add(bytes, [](std::string_view) {});
    return std::string(cutter.overwritten());
  };
  EXPECT_EQ(after("an unfinished line"), "");
  EXPECT_EQ(after("\r"), "");
  EXPECT_EQ(after("1%"), "1%");
  EXPECT_EQ(after("\r2%\r"), "2%");
  EXPECT_EQ(after("\n"), "");
}

TEST(LineCutter, LongLinesAreCut) {
  EXPECT_THAT(Cut({"abcdefgh\n"}, 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(Cut({"ab", "c", "\nabc\nd"}, 3), ElementsAre("abc", "abc", "d"));
  EXPECT_THAT(Cut({"ab\r", "cd"}, 3), ElementsAre("cd"));
}

TEST(LineCutter, LongLinesAreCutBetweenCharacters) {
  EXPECT_THAT(Cut({"a\u20AC\u20AC\n"}, 3), ElementsAre("a", "\u20AC", "\u20AC"));
  EXPECT_THAT(Cut({"ab\xE2", "\x82",
                   "\xAC"
                   "cde\n"},
                  4),
              ElementsAre("ab",
                          "\u20AC"
                          "c",
                          "de"));
  EXPECT_THAT(Cut({"\xAC\xAC\xAC\xAC\xAC\xAC\n"}, 4), ElementsAre("\xAC\xAC\xAC\xAC", "\xAC\xAC"));
}

TEST(LineCutter, BytesAreBytes) {
  EXPECT_THAT(Cut({std::string("a\0b\xff\n", 5)}), ElementsAre(std::string("a\0b\xff", 4)));
}

}  // namespace
}  // namespace muster::line_cutter_test
