#include "muster/launch/backends/local/local_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "muster/base/file_system.h"
#include "muster/launch/backends/local/pid_fd.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/cluster_plan.h"
#include "muster/launch/random_hex.h"

namespace muster::local_backend_test {
namespace {

using ::testing::HasSubstr;

// So that what never ends is a red test and not a hanging one.
constexpr int kHangMs = 60000;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

// A process held before it ends, so that its end can be waited for.
class Watched {
 public:
  explicit Watched(pid_t pid) : fd_(OpenPidFd(pid)) { EXPECT_GE(fd_, 0); }
  ~Watched() { close(fd_); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  void WaitForEnd() const {
    pollfd gone = {fd_, POLLIN, 0};
    EXPECT_EQ(poll(&gone, 1, kHangMs), 1) << "still running";
  }

 private:
  const int fd_;
};

class LocalBackendTest : public testing::Test, public BackendEvents {
 protected:
  void SetUp() override { ASSERT_TRUE(backend_.Start().ok()); }
  void TearDown() override { backend_.Stop(); }

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    EXPECT_EQ(exits_.count(task), 0) << "output after the exit";
    (stream == OutputStream::kStdout ? out_ : err_)[task] += bytes;
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    EXPECT_TRUE(exits_.emplace(task, status).second);
  }

  absl::Status Shell(const TaskId& task, const std::string& script) {
    return backend_.Launch({.task = task,
                            .arguments = {"sh", "-c", script},
                            .environment = {{kRunIdVariable, run_id_}, {"ADDED", "task's"}}});
  }
  void RunUntilExit(const TaskId& task) {
    while (exits_.count(task) == 0) loop_.RunOnce(absl::InfiniteFuture());
  }
  // Until the task has stopped itself.
  void WaitUntilStopped(const TaskId& task) {
    siginfo_t stopped;
    EXPECT_EQ(waitid(P_PID, backend_.Pid(task), &stopped, WSTOPPED | WNOWAIT), 0);
  }
  // The process whose number the task has written as its first line.
  Watched StartedBy(const TaskId& task) {
    RunUntilOutput(task, "\n");
    return Watched(std::stoi(out_[task]));
  }
  void RunUntilOutput(const TaskId& task, const std::string& text) {
    while (out_[task].find(text) == std::string::npos) loop_.RunOnce(absl::InfiniteFuture());
  }

  const std::string run_id_ = RandomHex(8);
  FdLoop loop_{RealClock()};
  LocalBackend backend_{
      {.run_id = run_id_, .environment = {"PATH=/usr/bin:/bin", "KEPT=own", "ADDED=own"}}, loop_, *this};
  std::map<TaskId, std::string> out_, err_;
  std::map<TaskId, ExitStatus> exits_;
};

TEST_F(LocalBackendTest, TellsOutputThenExit) {
  ASSERT_TRUE(Shell(kTask, "echo $KEPT $ADDED; echo bad >&2; read line || echo no input; exit 3").ok());
  ASSERT_TRUE(Shell(kOther, "kill -9 $$").ok());
  RunUntilExit(kTask);
  RunUntilExit(kOther);
  EXPECT_EQ(out_[kTask], "own task's\nno input\n");
  EXPECT_EQ(err_[kTask], "bad\n");
  EXPECT_EQ(exits_[kTask], ExitStatus{.code = 3});
  EXPECT_EQ(exits_[kOther], ExitStatus{.signal = 9});
  EXPECT_EQ(backend_.Stop(), 0);
}

TEST_F(LocalBackendTest, AProgramThatCannotRunIsAnErrorNotAnExit) {
  const absl::Status missing = backend_.Launch({.task = kTask, .arguments = {"/no/such/program"}});
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/no/such/program"));
  const std::string broken = testing::TempDir() + "local_backend_test_broken";
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), broken, AsBytes("#!/no/such/shell\n", 17)).ok());
  ASSERT_EQ(chmod(broken.c_str(), 0755), 0);
  EXPECT_EQ(backend_.Launch({.task = kTask, .arguments = {broken}}).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(PosixFileSystem().Remove(broken).ok());
  EXPECT_TRUE(exits_.empty());
  EXPECT_EQ(backend_.Pid(kTask), 0);
}

TEST_F(LocalBackendTest, EndReachesAllThatTheTaskHasStarted) {
  ASSERT_TRUE(Shell(kTask, "sleep 1000 & echo $!; wait").ok());
  ASSERT_TRUE(Shell(kOther, "trap '' TERM; sleep 1000 & echo $!; wait").ok());
  const Watched child = StartedBy(kTask);
  const Watched other_child = StartedBy(kOther);
  backend_.End(kTask, EndMode::kGently);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = 15});
  child.WaitForEnd();
  backend_.End(kOther, EndMode::kAtOnce);
  RunUntilExit(kOther);
  EXPECT_EQ(exits_[kOther], ExitStatus{.signal = 9});
  other_child.WaitForEnd();
}

TEST_F(LocalBackendTest, AStoppedTaskCanBeEnded) {
  ASSERT_TRUE(Shell(kTask, "echo ready; kill -STOP $$").ok());
  RunUntilOutput(kTask, "ready");
  WaitUntilStopped(kTask);
  backend_.End(kTask, EndMode::kGently);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = 15});
}

TEST_F(LocalBackendTest, WhatATaskLeavesBehindIsKilledWhenItEnds) {
  ASSERT_TRUE(Shell(kTask, "sleep 1000 & echo $!; kill -STOP $$").ok());
  const Watched child = StartedBy(kTask);
  WaitUntilStopped(kTask);
  kill(backend_.Pid(kTask), SIGCONT);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.code = 0});
  child.WaitForEnd();
}

TEST_F(LocalBackendTest, StopFindsWhoHasLeftTheGroup) {
  ASSERT_TRUE(Shell(kTask, "setsid sh -c 'echo $$; exec sleep 1000' & wait").ok());
  const Watched stray = StartedBy(kTask);
  backend_.End(kTask, EndMode::kAtOnce);
  RunUntilExit(kTask);
  EXPECT_THAT(ProcessesOfRun(run_id_), testing::SizeIs(1));
  EXPECT_EQ(backend_.Stop(), 1);
  stray.WaitForEnd();
  EXPECT_THAT(ProcessesOfRun(run_id_), testing::IsEmpty());
}

TEST_F(LocalBackendTest, PausedOutputStaysInThePipe) {
  backend_.PauseOutput(true);
  ASSERT_TRUE(Shell(kTask, "echo one; kill -STOP $$").ok());
  WaitUntilStopped(kTask);  // it has written
  loop_.RunOnce(RealClock().Now());
  EXPECT_EQ(out_[kTask], "");
  backend_.PauseOutput(false);
  loop_.RunOnce(RealClock().Now());
  EXPECT_EQ(out_[kTask], "one\n");
}

TEST_F(LocalBackendTest, OutputOfATaskThatEndsWhilePausedIsNotLost) {
  backend_.PauseOutput(true);
  ASSERT_TRUE(Shell(kTask, "echo last words").ok());
  RunUntilExit(kTask);
  EXPECT_EQ(out_[kTask], "last words\n");
}

}  // namespace
}  // namespace muster::local_backend_test
