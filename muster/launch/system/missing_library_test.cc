#include "muster/launch/system/missing_library.h"

#include <gmock/gmock.h>

namespace muster::missing_library_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

const std::deque<std::string> kLines = {"begins",
                                        "x/digits: error while loading shared libraries: libtorch_cpu.so: cannot open "
                                        "shared object file: No such file or directory"};

TEST(MissingLibraryTest, IsNamedWithItsHost) {
  EXPECT_THAT(
      MissingLibraryText({.code = 127}, kLines, "h2"),
      AllOf(HasSubstr("(libtorch_cpu.so, a shared library of its program, isn't found on h2; "), HasSubstr("`setup`")));
  EXPECT_THAT(MissingLibraryText({.code = 127}, kLines, ""), AllOf(HasSubstr("isn't found)"), Not(HasSubstr("setup"))));
}

TEST(MissingLibraryTest, OtherEndsHaveOtherCauses) {
  EXPECT_EQ(MissingLibraryText({.code = 1}, kLines, "h2"), "");
  EXPECT_EQ(MissingLibraryText({.code = 127}, {"sh: nothing: not found"}, "h2"), "");
}

}  // namespace
}  // namespace muster::missing_library_test
