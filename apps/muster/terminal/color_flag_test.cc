#include "apps/muster/terminal/color_flag.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "apps/muster/terminal/own_environment.h"

namespace muster::color_flag_test {
namespace {

// A terminal of its own, with TERM and NO_COLOR as the test wants them.
class ColorFlagTest : public ::testing::Test {
 protected:
  ColorFlagTest() {
    grantpt(terminal_);
    unlockpt(terminal_);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
  ~ColorFlagTest() override {
    close(terminal_);
    before_.empty() ? unsetenv("TERM") : setenv("TERM", before_.c_str(), 1);
    unsetenv("NO_COLOR");
  }

  const std::string before_ = OwnVariable("TERM");
  const int terminal_ = posix_openpt(O_RDWR | O_NOCTTY);
};

TEST_F(ColorFlagTest, AutoAsksTheTerminalAndTheEnvironment) {
  EXPECT_TRUE(WantsColor("auto", terminal_).value());
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor("auto", terminal_).value());
  EXPECT_TRUE(WantsColor("always", terminal_).value());
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(WantsColor("auto", terminal_).value());
  EXPECT_FALSE(WantsColor("never", terminal_).value());
}

TEST_F(ColorFlagTest, AFileGetsNone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(WantsColor("auto", ends[1]).value());
  EXPECT_TRUE(WantsColor("always", ends[1]).value());
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ColorFlagTest, AnotherWordIsAMistake) {
  EXPECT_EQ(WantsColor("blue", terminal_).status().message(), "--color 'blue': accepted are auto, always, never");
}

}  // namespace
}  // namespace muster::color_flag_test
