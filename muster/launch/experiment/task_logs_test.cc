#include "muster/launch/experiment/task_logs.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/task_log/live_state.h"
#include "muster/launch/task_log/log_watch.h"

namespace muster::task_logs_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

const TaskId kMaster{kMasterJob, 0};
const TaskId kWorker2{kWorkerJob, 1};

class TaskLogsTest : public testing::Test {
 protected:
  // Returns the log's lines without their times: "o text".
  std::vector<std::string> Lines(const std::string& task) {
    logs_.Flush();
    std::ifstream in(folder_ / (task + "/000001.log"), std::ios::binary);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      const size_t space = line.find(' ');
      lines.push_back(line.substr(space == std::string::npos ? 0 : space + 1));
    }
    return lines;
  }

  const ScratchFolder folder_;
  SimulatedClock clock_;
  TaskLogs logs_{{.folder = folder_.path(), .last_lines = 2}, clock_};
};

TEST_F(TaskLogsTest, OutputIsCutIntoLines) {
  logs_.Take(kWorker2, OutputStream::kStdout, "one\ntw");
  logs_.Take(kWorker2, OutputStream::kStderr, "trouble\n");
  logs_.Take(kWorker2, OutputStream::kStdout, "o\nthree");
  EXPECT_THAT(Lines("worker.2"), ElementsAre("o one", "e trouble", "o two"));
  logs_.Finish(kWorker2);
  EXPECT_THAT(Lines("worker.2"), ElementsAre("o one", "e trouble", "o two", "o three"));
  // The task was restarted.
  logs_.Take(kWorker2, OutputStream::kStdout, "four\n");
  EXPECT_THAT(Lines("worker.2"), ElementsAre("o one", "e trouble", "o two", "o three", "o four"));
  EXPECT_THAT(Lines("master"), IsEmpty());
}

TEST_F(TaskLogsTest, OfALineThatIsOverwrittenTheLogHasTheLastStateAndReadersSeeOneASecond) {
  const auto live = [this] {
    logs_.Flush();
    std::vector<std::string> states;
    ReadLiveState(folder_ / "master", [&](const LogLineRecord& line) {
      states.push_back(absl::StrCat(std::string(1, static_cast<char>(line.kind)), " ", AbslView(line.text)));
    });
    return states;
  };
  WriteLiveState(folder_ / "master", "2026-01-31T07:23:46.123456Z o of an earlier attempt\n");
  EXPECT_THAT(live(), ElementsAre("o of an earlier attempt"));
  logs_.Take(kMaster, OutputStream::kStdout, "begins\n");
  EXPECT_THAT(live(), IsEmpty());
  logs_.Take(kMaster, OutputStream::kStderr, "\r 1%");
  EXPECT_THAT(live(), ElementsAre("e  1%"));
  logs_.Take(kMaster, OutputStream::kStderr, "\r 2%");
  EXPECT_THAT(live(), ElementsAre("e  1%"));
  clock_.Advance(absl::Seconds(1));
  logs_.Take(kMaster, OutputStream::kStderr, "\r 3%");
  EXPECT_THAT(live(), ElementsAre("e  3%"));
  EXPECT_THAT(Lines("master"), ElementsAre("o begins"));
  logs_.Take(kMaster, OutputStream::kStderr, "\r100%\n");
  EXPECT_THAT(live(), IsEmpty());
  EXPECT_THAT(Lines("master"), ElementsAre("o begins", "e 100%"));
}

TEST_F(TaskLogsTest, StatesAndWhatMusterSays) {
  logs_.AddState(kMaster, RunState::kPending);
  logs_.AddState(RunState::kRunning);
  logs_.Say("master exited with 1");
  logs_.Say("two\nlines\n");
  EXPECT_THAT(Lines("master"), ElementsAre("s PENDING"));
  EXPECT_THAT(Lines("experiment"), ElementsAre("s RUNNING", "m master exited with 1", "m two", "m lines"));
}

TEST_F(TaskLogsTest, TheLastLinesAreKept) {
  EXPECT_THAT(logs_.LastLines(kMaster), IsEmpty());
  logs_.AddState(kMaster, RunState::kRunning);
  EXPECT_THAT(logs_.LastLines(kMaster), IsEmpty()) << "only what the task has written";
  logs_.Take(kMaster, OutputStream::kStdout, "a\nb\n");
  logs_.Take(kMaster, OutputStream::kStderr, "c");
  EXPECT_THAT(logs_.LastLines(kMaster), ElementsAre("a", "b"));
  logs_.Finish(kMaster);
  EXPECT_THAT(logs_.LastLines(kMaster), ElementsAre("b", "c"));
}

TEST_F(TaskLogsTest, TheNextSupervisorKnowsTheLastLines) {
  logs_.Take(kMaster, OutputStream::kStdout, "a\nb\n");
  logs_.Take(kMaster, OutputStream::kStderr, "c\nno line yet");
  logs_.AddState(kMaster, RunState::kRunning);
  logs_.Flush();
  TaskLogs next({.folder = folder_.path(), .last_lines = 2}, clock_);
  next.GoOn(kMaster, *logs_.Logged(kMaster));
  EXPECT_THAT(next.LastLines(kMaster), ElementsAre("b", "c"));
  next.Take(kMaster, OutputStream::kStdout, "d\n");
  EXPECT_THAT(next.LastLines(kMaster), ElementsAre("c", "d"));
}

TEST_F(TaskLogsTest, TheRunsOwnLinesAreSeenLast) {
  logs_.AddState(kMaster, RunState::kRunning);
  logs_.AddState(RunState::kRunning);
  logs_.Flush();
  LogWatch watch;
  enum Keys : size_t { kOwn, kTask };
  ASSERT_EQ(watch.Add(folder_ / "experiment", kOwn, /*files=*/true), LogWatch::Seen::kWatched);
  ASSERT_EQ(watch.Add(folder_ / "master", kTask, /*files=*/true), LogWatch::Seen::kWatched);
  logs_.AddState(RunState::kFinished);
  logs_.Take(kMaster, OutputStream::kStdout, "done\n");
  logs_.Flush();
  std::vector<size_t> keys;
  ASSERT_TRUE(watch.Changed(keys));
  EXPECT_THAT(keys, ElementsAre(kTask, kOwn));
}

}  // namespace
}  // namespace muster::task_logs_test
