#include "muster/launch/task_log/logged_since.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/task_log/task_log.h"

namespace muster {
namespace {

class LoggedSinceTest : public testing::Test {
 protected:
  TaskLogOptions Options() const { return {.folder = folder_.path(), .most_bytes = 1 << 20, .file_bytes = 200}; }
  void Add(TaskLog& log, LogKind kind, const std::string& text) {
    log.Add(absl::Now(), kind, text);
    log.Flush();
  }

  const ScratchFolder folder_;
};

TEST_F(LoggedSinceTest, CountsWhatStandsBehindThePlaceInAllFiles) {
  TaskLog log(Options());
  Add(log, LogKind::kStdout, "counted before");
  const LoggedOutput known = {.out = 15, .err = 0, .end = log.end()};
  EXPECT_EQ(CountLogged(folder_.path(), known), known);
  for (int i = 0; i < 20; ++i) Add(log, i % 2 == 0 ? LogKind::kStdout : LogKind::kStderr, "12345");
  Add(log, LogKind::kState, "RUNNING");
  Add(log, LogKind::kMuster, "says");
  ASSERT_GT(log.end().file, known.end.file);
  EXPECT_EQ(CountLogged(folder_.path(), known), (LoggedOutput{.out = 15 + 60, .err = 60, .end = log.end()}));
}

TEST_F(LoggedSinceTest, TheRestOfALineInWhichTheWriterWasKilledIsRemoved) {
  TaskLog log(Options());
  Add(log, LogKind::kStdout, "whole");
  const std::string file = folder_ / "000001.log";
  std::ofstream(file, std::ios::app) << "2026-01-31T07:23:46.123456Z o hal";
  EXPECT_EQ(CountLogged(folder_.path(), {}), (LoggedOutput{.out = 6, .err = 0, .end = log.end()}));
  std::ifstream in(file);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(in), {}}).size(), static_cast<size_t>(log.end().bytes));
}

TEST_F(LoggedSinceTest, WithoutALogThereIsNothing) { EXPECT_EQ(CountLogged(folder_ / "none", {}), LoggedOutput()); }

}  // namespace
}  // namespace muster
