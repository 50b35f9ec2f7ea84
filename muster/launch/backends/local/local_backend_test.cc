#include "muster/launch/backends/local/local_backend.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/backends/local/mounts.h"
#include "muster/launch/backends/local/oom_kills.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"

namespace muster::local_backend_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// Turns a hang into a failed test.
constexpr int kHangMs = 60000;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

// Holds a process before it ends, so that its end can be waited for.
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

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override {
    addresses_[task] = addresses;
  }
  void OnNotReserved(const TaskId& task, const absl::Status& why) override { ADD_FAILURE() << task.ToString() << why; }
  void OnStarted(const TaskId& task, const LocalProcess& process) override {
    processes_[task] = process;
    answers_[task] = absl::OkStatus();
  }
  void OnNotStarted(const TaskId& task, const absl::Status& why) override { answers_[task] = why; }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override {
    EXPECT_EQ(exits_.count(task), 0) << "output after the exit";
    (stream == OutputStream::kStdout ? out_ : err_)[task] += bytes;
  }
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    EXPECT_TRUE(exits_.emplace(task, status).second);
    processes_.erase(task);
  }

  // The memory watch uses a clock that is moved by hand, and every process uses resident_ bytes.
  explicit LocalBackendTest(bool control_groups = true)
      : backend_({.run_id = run_id_,
                  .environment = {"PATH=/usr/bin:/bin", "KEPT=own", "ADDED=own"},
                  .resident_bytes =
                      [this](const std::vector<pid_t>& pids) {
                        std::map<pid_t, int64_t> bytes;
                        for (const pid_t pid : pids) bytes[pid] = resident_;
                        return bytes;
                      },
                  .note = [this](const std::string& line) { notes_.push_back(line); },
                  .control_groups = control_groups,
                  .clock = &clock_},
                 loop_, *this) {}

  ProcessSpec ShellSpec(const TaskId& task, const std::string& script) const {
    return {.task = task,
            .arguments = {"sh", "-c", script},
            .environment = {{kRunIdVariable, run_id_}, {"ADDED", "task's"}}};
  }
  // Returns what came of it.
  absl::Status Launch(const ProcessSpec& process) {
    answers_.erase(process.task);
    backend_.Launch(process);
    while (answers_.count(process.task) == 0) loop_.RunOnce(absl::InfiniteFuture());
    return answers_[process.task];
  }
  absl::Status Shell(const TaskId& task, const std::string& script) { return Launch(ShellSpec(task, script)); }
  pid_t PidOf(const TaskId& task) const {
    const auto found = processes_.find(task);
    return found == processes_.end() ? 0 : found->second.pid;
  }
  void RunUntilExit(const TaskId& task) {
    while (exits_.count(task) == 0) loop_.RunOnce(absl::InfiniteFuture());
  }
  // Returns whether nobody of the run is said to have killed it. What else the machine says of it, it says of itself.
  bool WasKilledFromOutside(const TaskId& task) const {
    const ExitStatus& status = exits_.at(task);
    return status.signal == SIGKILL && status.over_memory == 0 && status.killed_from != KilledFrom::kUnknown;
  }
  // Waits until the task has stopped itself.
  void WaitUntilStopped(const TaskId& task) {
    siginfo_t stopped;
    EXPECT_EQ(waitid(P_PID, PidOf(task), &stopped, WSTOPPED | WNOWAIT), 0);
  }
  // Runs until the task's first process has ended and the backend has seen it.
  void RunUntilShellHasEnded(const TaskId& task) {
    siginfo_t ended;
    EXPECT_EQ(waitid(P_PID, PidOf(task), &ended, WEXITED | WNOWAIT), 0);
    loop_.RunOnce(RealClock().Now());
  }
  // Returns the process whose number the task wrote as its first line.
  Watched StartedBy(const TaskId& task) {
    RunUntilOutput(task, "\n");
    return Watched(std::stoi(out_[task]));
  }
  void RunUntilOutput(const TaskId& task, const std::string& text) {
    while (out_[task].find(text) == std::string::npos) loop_.RunOnce(absl::InfiniteFuture());
  }

  const std::string run_id_ = RandomHex(8);
  FdLoop loop_{RealClock()};
  SimulatedClock clock_;
  int64_t resident_ = 0;
  std::vector<std::string> notes_;
  LocalBackend backend_;
  std::map<TaskId, std::string> out_, err_;
  std::map<TaskId, ExitStatus> exits_;
  std::map<TaskId, std::vector<std::string>> addresses_;
  std::map<TaskId, absl::Status> answers_;
  std::map<TaskId, LocalProcess> processes_;  // that run
};

// Returns what tasks are told of a port that is reserved at `address`.
std::string ReservedAt(const std::string& address, const std::optional<PortRange>& ports = std::nullopt) {
  FdLoop loop(RealClock());
  struct : BackendEvents {
    void OnReserved(const TaskId&, const std::vector<std::string>& addresses) override { told = addresses.at(0); }
    void OnNotReserved(const TaskId&, const absl::Status& why) override { told = why.ToString(); }
    void OnStarted(const TaskId&, const LocalProcess&) override {}
    void OnNotStarted(const TaskId&, const absl::Status&) override {}
    void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
    void OnExit(const TaskId&, const ExitStatus&) override {}
    std::string told;
  } events;
  LocalBackend backend({.run_id = RandomHex(8), .plan = {.ports = ports}, .address = address}, loop, events);
  EXPECT_TRUE(backend.Start().ok());
  backend.Reserve(kTask, {0});
  while (events.told.empty()) loop.RunOnce(absl::InfiniteFuture());
  backend.Stop();
  return events.told;
}

TEST(LocalBackendAddressTest, TasksAreToldTheAddressThatWasGiven) {
  EXPECT_THAT(ReservedAt("127.0.0.2"), ::testing::MatchesRegex("127\\.0\\.0\\.2:[0-9]+"));
  EXPECT_THAT(ReservedAt("::"), ::testing::MatchesRegex("\\[::\\]:[0-9]+"));
  EXPECT_THAT(ReservedAt("192.0.2.7"), ::testing::MatchesRegex("192\\.0\\.2\\.7:[0-9]+")) << "not this machine's own";
}

TEST(LocalBackendAddressTest, PortsAreOfTheRangeThatWasGiven) {
  const uint16_t number = FreePorts::Reserve(1)->port(0);  // released again at once
  EXPECT_EQ(ReservedAt("127.0.0.1", PortRange{.first = number, .count = 1}), absl::StrCat("127.0.0.1:", number));
  const FreePorts taken = FreePorts::Take({.first = number, .count = 1}).value();
  EXPECT_THAT(ReservedAt("127.0.0.1", PortRange{.first = number, .count = 1}),
              ::testing::HasSubstr(absl::StrCat("no port of ", number, "-", number, " is free")));
}

// As of torchrun, whose processes know nothing of each other.
TEST_F(LocalBackendTest, ProcessesThatShareTheHostHaveTheirPartOfItsProcessors) {
  ProcessSpec process = ShellSpec(kTask, "echo threads: $OMP_NUM_THREADS.");
  process.environment.emplace_back(kSharersVariable, "2");
  process.environment.emplace_back(kProcessorsVariable, "1");
  ASSERT_TRUE(Launch(process).ok());
  RunUntilOutput(kTask, "threads: 1.");
  EXPECT_THAT(notes_, ::testing::Contains(::testing::HasSubstr("each process computes with 1 thread (1 processor")));
}

TEST_F(LocalBackendTest, InputOfAProgramThatHasClosedItsStdinIsDropped) {
  signal(SIGPIPE, SIG_IGN);
  ProcessSpec process = ShellSpec(kTask, "exec 0<&-; echo closed; exec sleep 1000");
  process.takes_input = true;
  ASSERT_TRUE(Launch(process).ok());
  RunUntilOutput(kTask, "closed");
  backend_.Input(kTask, std::string(2 * kMaxWaitingInput, 'x'));
  EXPECT_THAT(notes_, IsEmpty());
  backend_.End(kTask, EndMode::kGently);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = SIGTERM});
}

TEST_F(LocalBackendTest, ATaskThatDoesNotReadItsInputIsNamed) {
  signal(SIGPIPE, SIG_IGN);
  ProcessSpec process = ShellSpec(kTask, "exec sleep 1000");
  process.takes_input = true;
  ASSERT_TRUE(Launch(process).ok());
  backend_.Input(kTask, std::string(kMaxWaitingInput, 'x'));
  EXPECT_THAT(notes_, IsEmpty());
  backend_.Input(kTask, std::string(1 << 20, 'x'));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("worker:0 is killed: ")));
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = SIGKILL});
}

TEST_F(LocalBackendTest, TellsOutputThenExit) {
  ASSERT_TRUE(Shell(kTask, "echo $KEPT $ADDED; echo bad >&2; read line || echo no input; exit 3").ok());
  ASSERT_TRUE(Shell(kOther, "kill -9 $$").ok());
  RunUntilExit(kTask);
  RunUntilExit(kOther);
  EXPECT_EQ(out_[kTask], "own task's\nno input\n");
  EXPECT_EQ(err_[kTask], "bad\n");
  EXPECT_EQ(exits_[kTask], ExitStatus{.code = 3});
  EXPECT_TRUE(WasKilledFromOutside(kOther));
  EXPECT_EQ(backend_.Stop(), 0);
}

TEST_F(LocalBackendTest, AProgramThatCannotRunIsAnErrorNotAnExit) {
  const absl::Status missing = Launch({.task = kTask, .arguments = {"/no/such/program"}});
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/no/such/program"));
  const std::string broken = testing::TempDir() + "local_backend_test_broken";
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), broken, AsBytes("#!/no/such/shell\n", 17)).ok());
  ASSERT_EQ(chmod(broken.c_str(), 0755), 0);
  EXPECT_EQ(Launch({.task = kTask, .arguments = {broken}}).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(PosixFileSystem().Remove(broken).ok());
  EXPECT_TRUE(exits_.empty());
  EXPECT_EQ(PidOf(kTask), 0);
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
  kill(PidOf(kTask), SIGCONT);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.code = 0});
  child.WaitForEnd();
}

TEST_F(LocalBackendTest, WhoLosesItsParentDoesNotStayAsAZombie) {
  ASSERT_TRUE(Shell(kTask, "(sh -c 'echo $$; exec sleep 1000' &); exec sleep 1000").ok());
  RunUntilOutput(kTask, "\n");
  const pid_t orphan = std::stoi(out_[kTask]);
  kill(orphan, SIGKILL);
  const absl::Time give_up = RealClock().Now() + absl::Milliseconds(kHangMs);
  while (kill(orphan, 0) == 0 && RealClock().Now() < give_up) loop_.RunOnce(give_up);
  EXPECT_EQ(kill(orphan, 0), -1) << "nobody has waited for it";
  EXPECT_THAT(exits_, IsEmpty());
  // The end of a task is still the task's.
  kill(PidOf(kTask), SIGKILL);
  RunUntilExit(kTask);
  EXPECT_TRUE(WasKilledFromOutside(kTask));
}

// A shell says by 137 that its program was killed. What was asked to end ends as the run wants it.
TEST_F(LocalBackendTest, AKillThatTheRunHasNotSentIsFromOutside) {
  ASSERT_TRUE(Shell(kTask, "sh -c 'kill -9 $$'; exit $?").ok());
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask].code, 137);
  EXPECT_NE(exits_[kTask].killed_from, KilledFrom::kUnknown);
  ASSERT_TRUE(Shell(kOther, "trap 'kill -9 $$' TERM; echo; while :; do sleep 0.01; done").ok());
  RunUntilOutput(kOther, "\n");
  backend_.End(kOther, EndMode::kGently);
  RunUntilExit(kOther);
  EXPECT_EQ(exits_[kOther], ExitStatus{.signal = SIGKILL});
}

TEST_F(LocalBackendTest, SignalsAreAsBeforeOnceStopped) {
  const auto blocked = [] {
    sigset_t mask;
    sigprocmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, SIGCHLD);
  };
  EXPECT_EQ(blocked(), 1);
  backend_.Stop();
  EXPECT_EQ(blocked(), 0);
}

TEST_F(LocalBackendTest, StopFindsWhoHasLeftTheGroup) {
  // It stops itself: one that is about to execute another program has no environment for an instant.
  ASSERT_TRUE(Shell(kTask, "setsid sh -c 'echo $$; kill -STOP $$' & wait").ok());
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
  WaitUntilStopped(kTask);  // it has written by then
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

// The shell has no trap and dies of the signal at once; the program that it started ends when it is told to.
TEST_F(LocalBackendTest, WhatAShellHasStartedHasItsTimeToEnd) {
  const std::string fifo = testing::TempDir() + "local_backend_test_" + run_id_;
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int go = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(Shell(kTask, "sh -c 'trap \"asked=1\" TERM; echo ready; until read x; do :; done <" + fifo +
                               "; echo saved $asked'; true")
                  .ok());
  RunUntilOutput(kTask, "ready");
  backend_.End(kTask, EndMode::kGently);
  RunUntilShellHasEnded(kTask);
  EXPECT_THAT(exits_, IsEmpty());
  EXPECT_EQ(write(go, "go\n", 3), 3);
  RunUntilExit(kTask);
  EXPECT_EQ(out_[kTask], "ready\nsaved 1\n");
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = 15});
  close(go);
  unlink(fifo.c_str());
}

TEST_F(LocalBackendTest, WhatAShellStartsAfterItWasAskedToEndIsAskedToo) {
  const std::string fifo = testing::TempDir() + "local_backend_test_" + run_id_;
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int go = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  // Waits until that program runs; before, the signal might be lost on it.
  ASSERT_TRUE(Shell(kTask,
                    "trap 'sleep 1000 & until read name </proc/$!/comm && [ $name = sleep ]; do :; done; exit 0' "
                    "TERM; echo ready; until read x; do :; done <" +
                        fifo)
                  .ok());
  RunUntilOutput(kTask, "ready");
  backend_.End(kTask, EndMode::kGently);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{});
  close(go);
  unlink(fifo.c_str());
}

TEST_F(LocalBackendTest, TasksThatEndTogetherAreLookedUpTogether) {
  constexpr int kTasks = 40;
  for (int i = 0; i < kTasks; ++i) ASSERT_TRUE(Shell({kWorkerJob, i}, "exec sleep 1000").ok());
  for (int i = 0; i < kTasks; ++i) backend_.End({kWorkerJob, i}, EndMode::kGently);
  for (int i = 0; i < kTasks; ++i) {
    siginfo_t ended;
    EXPECT_EQ(waitid(P_PID, PidOf({kWorkerJob, i}), &ended, WEXITED | WNOWAIT), 0);
  }
  for (int i = 0; i < kTasks; ++i) RunUntilExit({kWorkerJob, i});
  EXPECT_EQ(backend_.looks(), 1) << "each look reads all processes of the machine";
}

TEST_F(LocalBackendTest, WhatAShellHasStartedAndWillNotEndIsKilled) {
  ASSERT_TRUE(Shell(kTask, "sh -c 'trap \"\" TERM; echo $$; sleep 1000 & wait'; true").ok());
  const Watched child = StartedBy(kTask);
  backend_.End(kTask, EndMode::kGently);
  RunUntilShellHasEnded(kTask);
  EXPECT_THAT(exits_, IsEmpty());
  backend_.End(kTask, EndMode::kAtOnce);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], ExitStatus{.signal = 15});
  child.WaitForEnd();
}

// Tests what a task may see and use.
class SurroundingsTest : public LocalBackendTest {
 protected:
  explicit SurroundingsTest(bool control_groups = true) : LocalBackendTest(control_groups) {}
  void SetUp() override {
    LocalBackendTest::SetUp();
    for (const std::string& folder : {data_, elsewhere_}) {
      ASSERT_TRUE(PosixFileSystem().CreateDirectory(folder).ok());
    }
    std::ofstream(data_ + "/file") << "text\n";
  }
  // Returns what the process writes until it ends.
  std::string OutputOf(const ProcessSpec& process) {
    const absl::Status launched = Launch(process);
    EXPECT_TRUE(launched.ok()) << launched;
    if (launched.ok()) RunUntilExit(process.task);
    return out_[process.task];
  }

  const ScratchFolder folder_;
  const std::string data_ = folder_ / "data", elsewhere_ = folder_ / "elsewhere";
};

TEST_F(SurroundingsTest, ATaskRunsInItsDirectory) {
  ProcessSpec process = ShellSpec(kTask, "cat file; echo $PWD");
  process.directory = data_;
  EXPECT_EQ(OutputOf(process), "text\n" + data_ + "\n");
}

TEST_F(SurroundingsTest, AProgramsPathIsMeantFromItsDirectory) {
  std::ofstream(data_ + "/program") << "#!/bin/sh\necho it runs\n";
  ASSERT_EQ(chmod((data_ + "/program").c_str(), 0755), 0);
  EXPECT_EQ(OutputOf({.task = kTask, .arguments = {"./program"}, .directory = data_}), "it runs\n");
}

TEST_F(SurroundingsTest, ADirectoryThatIsNotThereIsNamed) {
  ProcessSpec process = ShellSpec(kTask, "true");
  process.directory = folder_ / "none";
  const absl::Status launched = Launch(process);
  EXPECT_EQ(launched.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(launched.message()), HasSubstr("cannot run in the directory '" + folder_ / "none'"));
  EXPECT_EQ(PidOf(kTask), 0);
}

TEST_F(SurroundingsTest, MountsAreSeenElsewhereAndReadOnlyByTheTaskAlone) {
  if (const absl::Status may = TryMounts(); !may.ok()) GTEST_SKIP() << "this process may not mount: " << may.message();
  ProcessSpec process =
      ShellSpec(kTask, "cat elsewhere/file; echo 1 >data/new || echo no; echo 2 >elsewhere/new && echo yes");
  process.directory = folder_.path();
  process.mounts = {{.host = data_, .path = elsewhere_, .writable = true}, {.host = data_, .path = data_}};
  EXPECT_EQ(OutputOf(process), "text\nno\nyes\n");
  EXPECT_TRUE(PosixFileSystem().Exists(data_ + "/new"));
  EXPECT_FALSE(PosixFileSystem().Exists(elsewhere_ + "/new"));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(SurroundingsTest, AMountOfWhatIsNotThereIsAnError) {
  ProcessSpec process = ShellSpec(kTask, "true");
  process.mounts = {{.host = folder_ / "none", .path = data_}};
  EXPECT_EQ(Launch(process).code(), absl::StatusCode::kNotFound);
}

TEST_F(SurroundingsTest, LimitsAreThoseOfAControlGroupThatIsGoneAfterwards) {
  ProcessSpec process = ShellSpec(kTask, "exec sleep 1000");
  process.limits = {.cpus = 0.5, .mem_bytes = 64 << 20};
  ASSERT_TRUE(Launch(process).ok());
  const std::string group = processes_[kTask].cgroup;
  if (group.empty()) GTEST_SKIP() << notes_.at(0);
  EXPECT_EQ(backend_.deadline(), clock_.Now() + OomKills::kLately) << "no need to look at memory";
  std::string memory, members;
  std::getline(std::ifstream(group + "/memory.max"), memory);
  EXPECT_EQ(memory, "67108864");
  std::getline(std::ifstream(group + "/cgroup.procs"), members);
  EXPECT_EQ(members, std::to_string(PidOf(kTask)));
  backend_.Stop();
  EXPECT_NE(access(group.c_str(), F_OK), 0);
}

TEST_F(SurroundingsTest, WhoUsesMoreMemoryThanItsControlGroupHasIsReportedAsSuch) {
  ProcessSpec process = ShellSpec(kTask, "test -n \"$(head -c 300000000 /dev/zero | tail | head -c 1)\"; exit 1");
  process.limits = {.mem_bytes = 64 << 20};
  ASSERT_TRUE(Launch(process).ok());
  if (processes_[kTask].cgroup.empty()) GTEST_SKIP() << notes_.at(0);
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], (ExitStatus{.signal = 9, .over_memory = 64 << 20}));
}

class WithoutControlGroupsTest : public SurroundingsTest {
 protected:
  WithoutControlGroupsTest() : SurroundingsTest(/*control_groups=*/false) {}
  void Check() {
    clock_.AdvanceTo(backend_.deadline());
    backend_.OnTime();
  }
  absl::Status Limited(const TaskId& task, const std::string& script, const ProcessLimits& limits) {
    ProcessSpec process = ShellSpec(task, script);
    process.limits = limits;
    return Launch(process);
  }
};

TEST_F(WithoutControlGroupsTest, WhoUsesMoreMemoryThanItMayIsKilledWithAllThatItHasStarted) {
  ASSERT_TRUE(Limited(kTask, "sleep 1000 & echo $!; wait", {.mem_bytes = 1 << 20}).ok());
  ASSERT_TRUE(Shell(kOther, "echo ready; sleep 1000 & wait").ok());
  const Watched child = StartedBy(kTask);
  resident_ = 1 << 20;
  Check();
  loop_.RunOnce(RealClock().Now());
  EXPECT_THAT(exits_, IsEmpty());
  resident_ = 2 << 20;
  Check();
  RunUntilExit(kTask);
  EXPECT_EQ(exits_[kTask], (ExitStatus{.signal = 9, .over_memory = 1 << 20}));
  child.WaitForEnd();
  EXPECT_EQ(exits_.count(kOther), 0) << "it has no limit";
  EXPECT_GT(backend_.deadline(), clock_.Now() + absl::Seconds(1));
}

TEST_F(WithoutControlGroupsTest, ANewLifeBeginsAnew) {
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(Limited(kTask, "kill -9 $$", {.mem_bytes = 1 << 20}).ok());
    RunUntilExit(kTask);
    EXPECT_TRUE(WasKilledFromOutside(kTask));
    exits_.clear();
  }
}

TEST_F(WithoutControlGroupsTest, WhatCannotBeHadIsSaidOnce) {
  for (const TaskId& task : {kTask, kOther}) {
    ASSERT_TRUE(Limited(task, "true", {.cpus = 2, .mem_bytes = 1 << 20}).ok());
  }
  EXPECT_THAT(notes_,
              ElementsAre("tasks' cpus are not limited; tasks' memory is checked once a second, and a task that "
                          "uses more than its limit is killed (control groups are not used)"));
}

TEST_F(WithoutControlGroupsTest, WhereNothingIsAskedForNothingIsSaid) {
  ASSERT_TRUE(Shell(kTask, "true").ok());
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(backend_.deadline(), clock_.Now() + OomKills::kLately);
  RunUntilExit(kTask);
  EXPECT_EQ(backend_.deadline(), absl::InfiniteFuture()) << "nothing runs";
}

// Two agents of one run may be in one PID namespace.
TEST_F(LocalBackendTest, TheEndOfOneBackendLeavesTheTasksOfAnotherOfTheSameRunAlone) {
  struct : BackendEvents {
    void OnReserved(const TaskId&, const std::vector<std::string>&) override {}
    void OnNotReserved(const TaskId&, const absl::Status&) override {}
    void OnStarted(const TaskId&, const LocalProcess&) override { started = true; }
    void OnNotStarted(const TaskId&, const absl::Status&) override {}
    void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
    void OnExit(const TaskId&, const ExitStatus&) override {}
    bool started = false;
  } others;
  LocalBackend second({.run_id = run_id_, .environment = {"PATH=/usr/bin:/bin"}}, loop_, others);
  ASSERT_TRUE(second.Start().ok());
  // One process that both the group and the environment would find, and one that only the environment finds.
  ASSERT_TRUE(Shell(kTask, "setsid sh -c 'echo $$; exec sleep 1000' & wait").ok());
  const Watched left = StartedBy(kTask);
  second.Launch(ShellSpec(kOther, "exec sleep 1000"));
  while (!others.started) loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(second.Stop(), 0);
  EXPECT_THAT(ProcessesOfRun(run_id_), testing::SizeIs(2));
  EXPECT_TRUE(exits_.empty());
  EXPECT_EQ(backend_.Stop(), 1);
  EXPECT_THAT(ProcessesOfRun(run_id_), testing::IsEmpty());
  left.WaitForEnd();
}

}  // namespace
}  // namespace muster::local_backend_test
