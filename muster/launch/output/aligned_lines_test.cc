#include "muster/launch/output/aligned_lines.h"

#include <gmock/gmock.h>

namespace muster::aligned_lines_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

TEST(AlignedLines, WordsAtTheLeftNumbersAtTheRight) {
  EXPECT_THAT(AlignedLines({{"NAME", "CITY", "N"}, {"a", "Köln", "10"}, {"longer", "", "5"}}, 2),
              ElementsAre("NAME    CITY   N", "a       Köln  10", "longer         5"));
}

TEST(AlignedLines, NothingBehindALine) {
  EXPECT_THAT(AlignedLines({{"A", "B"}, {"long", ""}, {"x", "y"}}, 2), ElementsAre("A     B", "long", "x     y"));
  EXPECT_THAT(AlignedLines({}, 1), IsEmpty());
}

TEST(AlignedLines, NoCellBreaksItsLine) {
  EXPECT_THAT(AlignedLines({{"A", "B"}, {"x\ny", "1"}}), ElementsAre("A       B", "x\\x0ay  1"));
}

TEST(AlignedText, EachLineHasItsEnd) {
  EXPECT_EQ(AlignedText({{"A", "B"}, {"long", "x"}}), "A     B\nlong  x\n");
  EXPECT_EQ(AlignedText({}), "");
}

}  // namespace
}  // namespace muster::aligned_lines_test
