// `muster logs` on logs and a registry that the test has written, as a supervisor would.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/task_log/task_log.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/muster_command.h"
#include "tests/process/testing/process.h"

namespace muster::logs_command_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty, ::testing::StartsWith;

const std::string kMuster = BinFolder() + "/muster";

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'769'844'226 + seconds); }  // 2026-01-31T07:23:46Z

class LogsCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { registry_ = Registry::Open(home_, RealClock()).value(); }

  // Creates an experiment supervised by this test.
  ExperimentId Create(const std::string& project, int runs = 0) {
    const NewExperiment experiment = {.project = project,
                                      .folder = scratch_.path(),
                                      .file_name = "muster.yml",
                                      .runs = std::vector<ParameterValues>(std::max(runs, 1)),
                                      .grid = runs > 0};
    const auto prepare = [this](const ExperimentId& id) -> absl::Status {
      EXPECT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
      auto lock = RunLock::Take(home_.lock(id));
      if (!lock.ok()) return lock.status();
      fcntl(lock->fd(), F_SETFD, FD_CLOEXEC);  // else child processes would inherit the lock
      locks_.emplace(id, *std::move(lock));
      return absl::OkStatus();
    };
    return {registry_->Create(experiment, prepare).value(), 0};
  }
  void SetTasks(const ExperimentId& id, const std::vector<TaskId>& tasks) {
    std::vector<TaskRecord> records;
    for (const TaskId& task : tasks) records.push_back({.task = task});
    EXPECT_TRUE(registry_->SetRun(registry_->Run(id).value(), records).ok());
  }
  void SetState(const ExperimentId& id, RunState state) {
    auto run = registry_->Run(id).value();
    run.state = state;
    EXPECT_TRUE(registry_->SetRun(run).ok());
  }
  // Releases the lock, as the end of its supervisor does.
  void ReleaseLock(const ExperimentId& id) { locks_.erase(id); }
  void End(const ExperimentId& id) {
    SetState(id, RunState::kFinished);
    ReleaseLock(id);
  }
  void Write(const ExperimentId& id, const std::string& task, int64_t second, LogKind kind, const std::string& text) {
    TaskLog({.folder = JoinPath(home_.logs(id), task)}).Add(At(second), kind, text);
  }
  // Creates experiment 1, with three tasks, ended.
  void CreateEnded() {
    const ExperimentId id = Create("toaster");
    SetTasks(id, {{"master", 0}, {"worker", 0}, {"worker", 1}});
    Write(id, "experiment", 0, LogKind::kState, "CREATED");
    Write(id, "master", 1, LogKind::kState, "RUNNING");
    Write(id, "worker.2", 2, LogKind::kStdout, "two\x1b[31m\x01");
    Write(id, "worker.1", 3, LogKind::kStderr, "one");
    Write(id, "worker.2", 4, LogKind::kStdout, "two again");
    Write(id, "experiment", 5, LogKind::kMuster, "master exited with 0");
    End(id);
  }

  ProcessOptions Options() const {
    return {.environment = {{"MUSTER_HOME", home_.path()}}, .directory = scratch_.path()};
  }
  static std::vector<std::string> Words(const std::vector<std::string>& arguments) {
    return Joined({kMuster, "logs"}, arguments);
  }
  std::string Shown(const std::vector<std::string>& arguments) const {
    return MusterOut(Joined({"logs"}, arguments), Options());
  }
  std::string Mistake(const std::vector<std::string>& arguments) const {
    return MusterMistake(Joined({"logs"}, arguments), Options());
  }

  const ScratchFolder scratch_;
  const Home home_ = *Home::Open(scratch_ / "home", PosixFileSystem());
  std::unique_ptr<Registry> registry_;
  std::map<ExperimentId, RunLock> locks_;
};

TEST_F(LogsCommandTest, AllTasksByTimeWithTheirNamesFilledUp) {
  CreateEnded();
  EXPECT_EQ(Shown({"1"}),
            "1          | [2026-01-31T07:23:46Z] --> CREATED\n"
            "1.master   | [2026-01-31T07:23:47Z] --> RUNNING\n"
            "1.worker.2 | two\\x01\n"
            "1.worker.1 | one\n"
            "1.worker.2 | two again\n"
            "1          | master exited with 0\n");
  EXPECT_THAT(Shown({"1", "--color", "always"}), HasSubstr("two\x1b[31m\\x01\x1b[0m\n"));
}

TEST_F(LogsCommandTest, OneTaskAndTheLastLines) {
  CreateEnded();
  EXPECT_EQ(Shown({"1.worker.2"}), "1.worker.2 | two\\x01\n1.worker.2 | two again\n");
  EXPECT_EQ(Shown({"1", "--last", "1"}),
            "1.master   | [2026-01-31T07:23:47Z] --> RUNNING\n"
            "1.worker.1 | one\n"
            "1.worker.2 | two again\n"
            "1          | master exited with 0\n");
  EXPECT_EQ(Shown({"1.worker.2", "--last", "0"}), "");
}

TEST_F(LogsCommandTest, JsonIsAnObjectALine) {
  CreateEnded();
  const std::string shown = Shown({"1", "--json"});
  const std::vector<std::string> lines = absl::StrSplit(shown, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines[0], R"({"id":"1","time":"2026-01-31T07:23:46.000000Z","stream":"state","text":"CREATED"})");
  const auto third = nlohmann::json::parse(lines[2]);
  EXPECT_EQ(third["id"], "1.worker.2");
  EXPECT_EQ(third["text"], "two\x1b[31m\x01");
}

TEST_F(LogsCommandTest, AGridShowsItsRunsAndARunItself) {
  const ExperimentId grid = Create("toaster", 2);
  Write({grid.number, 1}, "master", 1, LogKind::kStdout, "first");
  Write({grid.number, 2}, "master", 2, LogKind::kStdout, "second");
  Write({grid.number, 2}, "experiment", 3, LogKind::kState, "FINISHED");
  EXPECT_EQ(Shown({"1"}),
            "1.1.master | first\n1.2.master | second\n1.2        | [2026-01-31T07:23:49Z] --> FINISHED\n");
  EXPECT_EQ(Shown({"1.2"}), "1.2.master | second\n1.2        | [2026-01-31T07:23:49Z] --> FINISHED\n");
  EXPECT_EQ(Shown({"1.master"}), "1.1.master | first\n1.2.master | second\n");
}

TEST_F(LogsCommandTest, WithoutAnIdTheLastOfTheProjectOrOfAll) {
  for (const char* project : {"toaster", "kettle"}) {
    const ExperimentId id = Create(project);
    Write(id, "master", 1, LogKind::kStdout, project);
    End(id);
  }
  EXPECT_EQ(Shown({}), "2.master | kettle\n");
  const auto write_file = [this](const std::string& project) {
    const std::string text = absl::StrCat("project: ", project, "\ntrain:\n  framework: any\n  run: 'true'\n");
    EXPECT_TRUE(WriteFileAtomically(PosixFileSystem(), scratch_ / "muster.yml",
                                    {reinterpret_cast<const std::byte*>(text.data()), text.size()})
                    .ok());
  };
  write_file("toaster");
  EXPECT_EQ(Shown({}), "1.master | toaster\n");
  write_file("lamp");
  EXPECT_THAT(Mistake({}), HasSubstr("lamp"));
}

TEST_F(LogsCommandTest, MistakesAreSaidInALine) {
  CreateEnded();
  EXPECT_THAT(Mistake({"99"}), StartsWith("muster logs: "));
  EXPECT_THAT(Mistake({"99"}), HasSubstr("99"));
  EXPECT_THAT(Mistake({"toaster"}), HasSubstr("toaster"));
  EXPECT_THAT(Mistake({"1.worker.3"}),
              HasSubstr("experiment 1 has no task worker.3; it has: master, worker.1, worker.2"));
  EXPECT_THAT(Mistake({"1.build"}), HasSubstr("experiment 1 has no task build; it has: master, worker.1, worker.2"));
  EXPECT_THAT(Mistake({"1", "--last", "-1"}), HasSubstr("--last '-1': accepted is a number of lines, from 0"));
  EXPECT_THAT(Mistake({"1", "--last", "all"}), HasSubstr("--last 'all'"));
  EXPECT_THAT(Mistake({"1", "--color", "red"}), HasSubstr("accepted are auto, always, never"));
  EXPECT_THAT(Mistake({"1", "2"}), HasSubstr("unknown argument \"2\""));
}

TEST_F(LogsCommandTest, FollowingEndsWithTheExperiment) {
  const ExperimentId id = Create("toaster");
  Process process(Words({"1", "-f"}), Options());
  Write(id, "master", 1, LogKind::kStdout, "first");
  process.WaitForOut("first\n");
  Write(id, "worker.1", 0, LogKind::kStdout, "second");
  process.WaitForOut("second\n");
  SetState(id, RunState::kFinished);
  // Its supervisor hasn't written everything yet.
  Write(id, "experiment", 2, LogKind::kState, "FINISHED");
  process.WaitForOut("FINISHED\n");
  Write(id, "master", 3, LogKind::kStdout, "third");
  ReleaseLock(id);
  EXPECT_EQ(process.Wait(), 0) << process.err;
  EXPECT_THAT(process.err, IsEmpty());
  EXPECT_EQ(process.out,
            "1.master | first\n1.worker.1 | second\n1          | [2026-01-31T07:23:48Z] --> FINISHED\n"
            "1.master   | third\n");
}

TEST_F(LogsCommandTest, FollowingEndsWhenTheSupervisorIsLost) {
  const ExperimentId id = Create("toaster");
  Write(id, "master", 1, LogKind::kStdout, "first");
  Process process(Words({"1", "-f"}), Options());
  process.WaitForOut("first\n");
  ReleaseLock(id);
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_THAT(process.err, StartsWith("muster: experiment 1 failed: "));
  EXPECT_EQ(registry_->Run(id)->state, RunState::kFailed);
}

TEST_F(LogsCommandTest, AReaderWhoHasGoneEndsItInSilence) {
  const ExperimentId id = Create("toaster");
  {
    TaskLog log({.folder = JoinPath(home_.logs(id), "master")});
    for (int i = 0; i < 50'000; ++i) log.Add(At(i), LogKind::kStdout, absl::StrCat("line ", i));
  }
  // Also if no more lines come after one that could not be written.
  for (const char* flags : {"", "-f", "-f --last 1"}) {
    const std::string script = absl::StrCat("{ ", kMuster, " logs 1 ", flags, "; echo code $? >&2; } | head -n 1");
    Process process({"/bin/sh", "-c", script}, Options());
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_THAT(process.out, StartsWith("1.master | line ")) << flags;
    EXPECT_EQ(process.err, "code 0\n") << flags;
  }
}

}  // namespace
}  // namespace muster::logs_command_test
