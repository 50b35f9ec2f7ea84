#include "muster/launch/output/log_mux.h"

#include <gmock/gmock.h>

#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::log_mux_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

const TaskId kWorker{kWorkerJob, 1};
const TaskId kPs{kPsJob, 0};
constexpr OutputStream kOut = OutputStream::kStdout;
constexpr OutputStream kErr = OutputStream::kStderr;

class LogMuxTest : public testing::Test {
 protected:
  std::unique_ptr<LogMux> Make(const LogMuxOptions& options) {
    auto log = std::make_unique<LogMux>(
        options, PosixFileSystem(),
        [this](OutputStream stream, std::string_view lines) { (stream == kOut ? out_ : err_) += lines; }, clock_);
    EXPECT_TRUE(log->AddTask(kWorker).ok());
    EXPECT_TRUE(log->AddTask(kPs).ok());
    return log;
  }

  SimulatedClock clock_;
  std::string out_, err_;
};

TEST_F(LogMuxTest, PrefixesWholeLinesOfEachStream) {
  const auto log = Make({});
  log->Take(kWorker, kOut, "one\ntw");
  log->Take(kPs, kOut, "from ps\n");
  log->Take(kWorker, kErr, "trouble\r\n");
  log->Take(kWorker, kOut, "o\n\nlast");
  EXPECT_EQ(out_, "[worker:1] one\n[ps:0] from ps\n[worker:1] two\n[worker:1] \n");
  EXPECT_EQ(err_, "[worker:1] trouble\n");
  out_.clear();
  log->Finish(kWorker);
  EXPECT_EQ(out_, "[worker:1] last\n");
}

TEST_F(LogMuxTest, OfALineThatIsOverwrittenTheLastStateIsPassedOn) {
  const ScratchFolder scratch;
  const auto log = Make({.live_stdout = true, .log_dir = scratch / "logs"});
  for (const char* state : {"\r 1%", "\r 2%", "\r 3%"}) log->Take(kWorker, kErr, state);
  EXPECT_EQ(err_, "");
  log->Take(kWorker, kOut, "\r 1%");
  EXPECT_EQ(out_, "[worker:1]  1%\n");
  log->Take(kWorker, kOut, "\r 2%");
  clock_.Advance(absl::Milliseconds(999));
  log->Take(kWorker, kOut, "\r 3%");
  EXPECT_EQ(out_, "[worker:1]  1%\n");
  clock_.Advance(absl::Milliseconds(1));
  log->Take(kWorker, kOut, "\r 4%");
  log->Take(kWorker, kOut, "\r100%\n");
  EXPECT_EQ(out_, "[worker:1]  1%\n[worker:1]  4%\n[worker:1] 100%\n");
  log->Finish(kWorker);
  EXPECT_EQ(err_, "[worker:1]  3%\n");
  EXPECT_THAT(log->LastLines(kWorker), ElementsAre("100%", " 3%"));
  EXPECT_EQ(scratch.Read("logs/worker-1.log"), "100%\n 3%\n");
}

TEST_F(LogMuxTest, KeepsTheLastLines) {
  const auto log = Make({.last_lines = 2});
  log->Take(kWorker, kOut, "a\nb\n");
  log->Take(kWorker, kErr, "c\n");
  EXPECT_THAT(log->LastLines(kWorker), ElementsAre("b", "c"));
  EXPECT_TRUE(log->LastLines(kPs).empty());
}

TEST_F(LogMuxTest, CutsLinesThatDoNotEnd) {
  const auto log = Make({.max_line_bytes = 4});
  log->Take(kWorker, kOut, "1234\n12345678");
  EXPECT_EQ(out_, "[worker:1] 1234\n[worker:1] 1234\n");
  log->Take(kWorker, kOut, "9");
  EXPECT_EQ(out_, "[worker:1] 1234\n[worker:1] 1234\n[worker:1] 5678\n");
  log->Take(kWorker, kOut, "\n");
  EXPECT_THAT(out_, HasSubstr("[worker:1] 9\n"));
}

TEST_F(LogMuxTest, ColoursThePrefixOnly) {
  const auto log = Make({.color_stdout = true});
  log->Take(kWorker, kOut, "x\n");
  log->Take(kPs, kOut, "y\n");
  log->Take(kPs, kErr, "z\n");
  EXPECT_EQ(out_, "\x1b[36m[worker:1]\x1b[0m x\n\x1b[32m[ps:0]\x1b[0m y\n");
  EXPECT_EQ(err_, "[ps:0] z\n");
}

TEST_F(LogMuxTest, SaysTheLaunchersOwnLinesOnStderr) {
  Make({})->Say("hello");
  EXPECT_EQ(err_, "[muster] hello\n");
}

TEST_F(LogMuxTest, CopiesEachTasksLinesToAFile) {
  const ScratchFolder scratch;
  const auto log = Make({.color_stdout = true, .log_dir = scratch / "logs"});
  log->Take(kWorker, kOut, "one\n");
  log->Take(kWorker, kErr, "two");
  log->Finish(kWorker);
  log->Finish(kPs);
  EXPECT_EQ(scratch.Read("logs/worker-1.log"), "one\ntwo\n");
  EXPECT_TRUE(scratch.Has("logs/ps-0.log"));
  EXPECT_EQ(scratch.Read("logs/ps-0.log"), "");
}

TEST_F(LogMuxTest, ALogDirectoryThatCannotBeMadeIsAnError) {
  LogMux log({.log_dir = "/dev/null/logs"}, PosixFileSystem(), [](OutputStream, std::string_view) {});
  const absl::Status added = log.AddTask(kWorker);
  EXPECT_FALSE(added.ok());
  EXPECT_THAT(std::string(added.message()), HasSubstr("/dev/null/logs"));
}

}  // namespace
}  // namespace muster::log_mux_test
