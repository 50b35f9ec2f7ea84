#include "muster/launch/task/exit_status.h"

#include <gtest/gtest.h>

namespace muster::exit_status_test {
namespace {

TEST(ExitStatus, SaysHowItEnded) {
  EXPECT_EQ(ExitStatus{.code = 3}.ToString(), "exited with 3");
  EXPECT_EQ(ExitStatus{.signal = 9}.ToString(), "was killed by signal 9 (killed)");
  EXPECT_EQ((ExitStatus{.signal = 9, .over_memory = 512 << 20}).ToString(),
            "was killed by signal 9 (killed): it used more than its 512 MB of memory");
  EXPECT_EQ((ExitStatus{.signal = 9, .killed_from = KilledFrom::kOutside}.ToString()),
            "was killed by signal 9 (killed), from outside");
  EXPECT_EQ((ExitStatus{.code = 137, .killed_from = KilledFrom::kOutOfMemory}.ToString()),
            "exited with 137, as its program was killed by signal 9 (killed), from outside: memory had run out on its "
            "machine or in its job or container");
  EXPECT_EQ(ExitStatus{.signal = 11}.ToString(), "was killed by signal 11 (segmentation fault)");
  EXPECT_EQ(ExitStatus{.at_signal = true}.ToString(), "exited with 0 when a signal came to all of its job");
}

TEST(ExitStatus, SaysWithWhichHostItWasLost) {
  const ExitStatus lost{.signal = 9, .lost_host = "h2"};
  EXPECT_EQ(lost.ToString(), "was lost with its host h2");
  EXPECT_EQ(lost.Cause(), "h2 was lost");
  EXPECT_EQ(lost.Cause("h1"), "h2 was lost; it runs on h1 now");
  EXPECT_EQ(lost.Cause("h2"), "h2 was lost and is back");
  EXPECT_EQ((ExitStatus{.signal = 9, .over_memory = 512 << 20}).Cause("h1"), "used more than its 512 MB of memory");
  EXPECT_EQ(ExitStatus{.signal = 9}.Cause("h1"), "");
}

TEST(ExitStatus, TheCauseSaysWhoKilledIt) {
  const ExitStatus killed{.signal = 9, .killed_from = KilledFrom::kOutside};
  EXPECT_EQ(killed.Cause(), "was killed by signal 9 (killed), from outside");
  EXPECT_EQ(killed.Cause("h1"), killed.ToString());
  EXPECT_EQ((ExitStatus{.signal = 9, .killed_from = KilledFrom::kOutside, .lost_host = "h2"}).Cause(), "h2 was lost");
}

TEST(ExitStatus, NamesTheSignalThatAShellTellsOf) {
  EXPECT_EQ(ExitStatus{.code = 139}.ToString(),
            "exited with 139, as its program was killed by signal 11 (segmentation fault)");
  EXPECT_EQ(ExitStatus{.code = 143}.ToString(), "exited with 143, as its program was killed by signal 15 (terminated)");
  for (const int code : {127, 128, 138, 255})
    EXPECT_EQ(ExitStatus{.code = code}.ToString(), "exited with " + std::to_string(code));
}

TEST(ExitStatus, AsAShellHasIt) {
  EXPECT_EQ(ExitStatus{.code = 3}.ShellCode(), 3);
  EXPECT_EQ(ExitStatus{.signal = 15}.ShellCode(), 143);
  EXPECT_EQ(ExitStatus{.at_signal = true}.ShellCode(), 143);
  EXPECT_EQ((ExitStatus{.code = 1, .at_signal = true}.ShellCode()), 1);
  EXPECT_TRUE(ExitStatus{}.ok());
  EXPECT_FALSE(ExitStatus{.at_signal = true}.ok());
  EXPECT_FALSE(ExitStatus{.signal = 15}.ok());
}

}  // namespace
}  // namespace muster::exit_status_test
