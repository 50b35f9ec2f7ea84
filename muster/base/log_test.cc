#include "muster/base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::log_test {
namespace {

// Returns a new line for each call: LogLineOnce never repeats a line, so a repeated test needs a fresh one.
std::string NewLine() {
  static int lines = 0;
  return absl::StrCat("line ", ++lines, " of a test");
}

std::string Logged(const std::string& line, int times) {
  testing::internal::CaptureStderr();
  SetUpLog("");
  for (int i = 0; i < times; ++i) LogLineOnce(LogLevel::kWarning, line);
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, WhatIsSaidOnceIsSaidOnceAProcess) {
  const std::string line = NewLine();
  const std::string first = Logged(line, 3);
  EXPECT_TRUE(absl::StrContains(first, absl::StrCat(" W ", line, "\n"))) << first;
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 1) << first;
  EXPECT_EQ(Logged(line, 1), "") << "the log that is set up anew is the same process's";
  EXPECT_NE(Logged(NewLine(), 1), "") << "another line";
}

TEST(LogTest, WordsOfOthersCannotLookLikeALineOfTheLogNorReachTheTerminal) {
  testing::internal::CaptureStderr();
  SetUpLog("");
  LogInfo("worker:1 joined (\x1b[2Jhost\n00:00:00.000 E [ps:0] all is lost)");
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(absl::StrContains(shown, " I worker:1 joined (\\x1b[2Jhost\n    00:00:00.000 E [ps:0] all is lost)\n"))
      << shown;
}

// Several servers in one process call SetUpLog with their task while the others write.
TEST(LogTest, MayBeSetUpAnewWhileOthersWrite) {
  constexpr int kLines = 2000;
  testing::internal::CaptureStderr();
  SetUpLog("");
  std::thread writing([] {
    for (int i = 0; i < kLines; ++i) LogInfo("a line");
  });
  for (int i = 0; i < kLines; ++i) SetUpLog("worker:1");
  writing.join();
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), kLines);
}

}  // namespace
}  // namespace muster::log_test
