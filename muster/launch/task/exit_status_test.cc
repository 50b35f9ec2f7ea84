#include "muster/launch/task/exit_status.h"

#include <gtest/gtest.h>

namespace muster::exit_status_test {
namespace {

TEST(ExitStatus, SaysHowItEnded) {
  EXPECT_EQ(ExitStatus{.code = 3}.ToString(), "exited with 3");
  EXPECT_EQ(ExitStatus{.signal = 9}.ToString(), "was killed by signal 9 (Killed)");
  EXPECT_EQ((ExitStatus{.signal = 9, .over_memory = 512 << 20}).ToString(),
            "was killed by signal 9 (Killed): it used more than its 512 MB of memory");
}

TEST(ExitStatus, AsAShellHasIt) {
  EXPECT_EQ(ExitStatus{.code = 3}.ShellCode(), 3);
  EXPECT_EQ(ExitStatus{.signal = 15}.ShellCode(), 143);
  EXPECT_TRUE(ExitStatus{}.ok());
  EXPECT_FALSE(ExitStatus{.signal = 15}.ok());
}

}  // namespace
}  // namespace muster::exit_status_test
