#include "muster/train/hooks/progress_bar.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "muster/train/testing/hook_driver.h"

namespace muster::progress_bar_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

class ProgressBarTest : public ::testing::Test {
 protected:
  Terminal Screen(bool is_terminal) {
    return {.is_terminal = is_terminal,
            .width = [this] { return width_; },
            .write = [this](std::string_view text) { written_.emplace_back(text); }};
  }

  int width_ = 80;
  std::vector<std::string> written_;
};

TEST_F(ProgressBarTest, OneLineThatChangesInPlaceAndEndsWithANewline) {
  Driver driver(ProgressBar({.last_step = 100, .terminal = Screen(true)}));
  ASSERT_EQ(driver.Begin(), absl::OkStatus());
  ASSERT_EQ(driver.Create(0), absl::OkStatus());
  driver.Run(1);
  driver.now += absl::Milliseconds(99);
  driver.Run(10);
  driver.now += absl::Milliseconds(4901);
  driver.Run(50, 0.25);
  driver.now += absl::Seconds(1);
  EXPECT_EQ(written_.size(), 2u) << "not more often than ten times a second";
  ASSERT_EQ(driver.End(100), absl::OkStatus());
  // Uses 79 of 80 columns; the bar takes what is left, 40 at most.
  const std::string half = "\r\x1b[K 50% [" + std::string(15, '=') + ">" + std::string(14, ' ') +
                           "] 50/100  10.0 steps/s  ETA 0:05  loss 0.25\r";
  EXPECT_THAT(written_,
              ElementsAre("\r\x1b[K  1% [>" + std::string(39, ' ') + "] 1/100  loss 0.5\r", half, half, "\n"));
  for (const std::string& line : written_) EXPECT_LE(line.size(), 4u + 79u + 1u);
}

TEST_F(ProgressBarTest, ANarrowTerminalHasAShorterLine) {
  width_ = 24;
  Driver driver(ProgressBar({.last_step = 1000000, .terminal = Screen(true)}));
  ASSERT_EQ(driver.Create(0), absl::OkStatus());
  driver.Run(250000);
  ASSERT_EQ(written_.size(), 1u);
  EXPECT_EQ(written_[0], "\r\x1b[K 25% 250000/1000000  lo\r");
}

TEST_F(ProgressBarTest, ALineNowAndThenWhereThereIsNoTerminal) {
  Driver driver(ProgressBar({.last_step = 7300, .log_every = absl::Seconds(30), .terminal = Screen(false)}));
  ASSERT_EQ(driver.Create(100), absl::OkStatus());
  EXPECT_THAT(Logged([&] {
                for (int second = 0; second <= 61; ++second) {
                  driver.Run(100 + second);
                  driver.now += absl::Seconds(1);
                }
                EXPECT_EQ(driver.End(161), absl::OkStatus());
              }),
              ElementsAre("  1% 100/7300  loss 0.5", "  1% 130/7300  1.0 steps/s  ETA 1:59:30  loss 0.5",
                          "  2% 160/7300  1.0 steps/s  ETA 1:59:00  loss 0.5"));
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(ProgressBarTest, StepsFromTheFirstCreationAndTheRateFromTheLast) {
  Driver driver(ProgressBar({.num_steps = 100, .terminal = Screen(true)}));
  ASSERT_EQ(driver.Create(100), absl::OkStatus());
  ASSERT_EQ(driver.Create(150), absl::OkStatus());  // a recovery
  driver.now += absl::Seconds(10);
  driver.Run(160);
  ASSERT_EQ(written_.size(), 1u);
  EXPECT_THAT(written_[0], HasSubstr("160/200  1.0 steps/s  ETA 0:40"));
}

TEST_F(ProgressBarTest, ASessionThatFailsLeavesTheCursorOnANewLine) {
  {
    Driver driver(ProgressBar({.last_step = 100, .terminal = Screen(true)}));
    ASSERT_EQ(driver.Create(0), absl::OkStatus());
    driver.Run(1);
  }
  EXPECT_EQ(written_.back(), "\n");
  written_.clear();
  { Driver never_drawn(ProgressBar({.last_step = 100, .terminal = Screen(true)})); }
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(ProgressBarTest, ExactlyOneOfTheTwoIsGiven) {
  EXPECT_TRUE(absl::IsInvalidArgument(ProgressBar({})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(ProgressBar({.last_step = 1, .num_steps = 1})->Begin()));
}

// Replaces stderr by a pseudoterminal.
class StandardErrorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    screen_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (screen_ < 0) GTEST_SKIP() << "there are no pseudoterminals here";
    char name[100];
    ASSERT_EQ(grantpt(screen_), 0);
    ASSERT_EQ(unlockpt(screen_), 0);
    ASSERT_EQ(ptsname_r(screen_, name, sizeof name), 0);
    const int terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(terminal, 0);
    own_ = dup(STDERR_FILENO);
    ASSERT_GE(own_, 0);
    ASSERT_EQ(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
    close(terminal);
  }
  void TearDown() override {
    GiveBack();
    if (screen_ >= 0) close(screen_);
  }
  void Resize(int columns) {
    const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(screen_, TIOCSWINSZ, &size), 0);
  }
  // Returns everything written, and gives the test its own stderr back.
  std::string Shown() {
    GiveBack();
    std::string shown;
    char bytes[4096];
    // The terminal isn't open anywhere any more: its remaining bytes come, then an error.
    for (ssize_t got; (got = read(screen_, bytes, sizeof bytes)) > 0;) shown.append(bytes, static_cast<size_t>(got));
    return shown;
  }

 private:
  void GiveBack() {
    if (own_ < 0) return;
    dup2(own_, STDERR_FILENO);
    close(std::exchange(own_, -1));
  }

  int screen_ = -1;
  int own_ = -1;  // -1: restored
};

TEST_F(StandardErrorTest, ABarIsAsWideAsTheTerminalThatItIsOn) {
  Resize(40);
  Driver driver(ProgressBar({.last_step = 100}));
  ASSERT_EQ(driver.Begin(), absl::OkStatus());
  ASSERT_EQ(driver.Create(0), absl::OkStatus());
  driver.Run(50);
  Resize(30);
  ASSERT_EQ(driver.End(50), absl::OkStatus());
  // The terminal's driver puts a "\r" before a newline.
  EXPECT_EQ(Shown(),
            "\r\x1b[K 50% [=======>       ] 50/100  loss 0.5\r"
            "\r\x1b[K 50% [==>  ] 50/100  loss 0.5\r"
            "\r\n");
}

TEST_F(StandardErrorTest, ATerminalThatDoesNotKnowItsWidthIsTakenForAUsualOne) {
  Resize(0);
  EXPECT_TRUE(StandardError().is_terminal);
  EXPECT_EQ(StandardError().width(), 80);
}

TEST(StandardErrorOfAFileTest, IsNoTerminal) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(StandardError().is_terminal);
  EXPECT_EQ(StandardError().width(), 80);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace muster::progress_bar_test
