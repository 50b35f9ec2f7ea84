#include "muster/launch/experiment/detach.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::detach_test {
namespace {

using ::testing::HasSubstr, ::testing::Not;

constexpr int kOpenFd = 77;  // of this process; the supervisor must not inherit it

// A home with experiment 4, and in place of `muster` a script that reports its surroundings on stdout.
class DetachTest : public testing::Test {
 protected:
  DetachTest() {
    prctl(PR_SET_CHILD_SUBREAPER, 0);  // which a Backend may have made of the process
    EXPECT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(kId)).ok());
  }

  std::string Script(const std::string& text) {
    const std::string path = home_.path() + "/program";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }
  absl::StatusOr<pid_t> Start(const std::string& program, bool as_child = false) {
    return StartSupervisor(home_, kId, RunLock::Take(home_.lock(kId)).value(),
                           {.muster_command = program, .as_child = as_child});
  }
  // Waits until nobody holds the lock, which the supervisor does while it lives; returns its log.
  std::string LogAtTheEnd() {
    const int fd = open(home_.lock(kId).c_str(), O_RDWR | O_CLOEXEC);
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    close(fd);
    std::ifstream in(home_.supervisor_log(kId));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static constexpr ExperimentId kId{.number = 4};
  const ScratchFolder scratch_;
  const Home home_{scratch_.path()};
};

TEST_F(DetachTest, TheSupervisorIsNobodysChildAndHasNoTerminal) {
  const std::string program = Script(
      "echo \"said $*\"; echo \"home $MUSTER_HOME\"; pwd\n"
      "read -r pid name state parent group session terminal rest < /proc/$$/stat\n"
      "echo \"session $session terminal $terminal\"\n"
      "[ -e /proc/$$/fd/77 ] && echo leaked\n"
      "echo trouble >&2; wc -c\n");
  ASSERT_EQ(dup2(STDERR_FILENO, kOpenFd), kOpenFd);
  const auto pid = Start(program);
  close(kOpenFd);
  ASSERT_TRUE(pid.ok()) << pid.status();
  const std::string log = LogAtTheEnd();
  EXPECT_THAT(log, HasSubstr("said supervise 4 --lock-fd "));
  EXPECT_THAT(log, HasSubstr("home " + home_.path() + "\n/\n"));
  EXPECT_THAT(log, HasSubstr(" terminal 0\n"));
  EXPECT_THAT(log, Not(HasSubstr("session " + std::to_string(getsid(0)) + " ")));
  EXPECT_THAT(log, Not(HasSubstr("leaked")));
  EXPECT_THAT(log, HasSubstr("trouble\n0\n")) << "its stdin is empty";
  EXPECT_EQ(waitpid(*pid, nullptr, 0), -1) << "not a child";
}

// `muster train` in a task of another run: what ends that run's processes must not find the supervisor.
TEST_F(DetachTest, ItBelongsToNoRunAndToNoBackend) {
  ASSERT_EQ(setenv("MUSTER_RUN_ID", "outer", 1), 0);
  ASSERT_EQ(setenv("MUSTER_AGENT_ID", "outer", 1), 0);
  const auto pid = Start(Script("echo \"ids ${MUSTER_RUN_ID-none} ${MUSTER_AGENT_ID-none} $MUSTER_DETACHED\"\n"));
  unsetenv("MUSTER_RUN_ID");
  unsetenv("MUSTER_AGENT_ID");
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_THAT(LogAtTheEnd(), HasSubstr("ids none none 1\n"));
}

TEST_F(DetachTest, ItHoldsTheLockForAsLongAsItLives) {
  // Only a program can listen to blocked signals; this script has to be killed.
  const auto pid = Start(Script("sleep 100\n")).value();
  EXPECT_TRUE(RunLock::IsHeld(home_.lock(kId)));
  EXPECT_EQ(RunLock::Take(home_.lock(kId)).status().code(), absl::StatusCode::kFailedPrecondition);
  // Kills the script's process group, which also contains its sleep.
  EXPECT_EQ(kill(-getpgid(pid), SIGKILL), 0);
  LogAtTheEnd();
  EXPECT_FALSE(RunLock::IsHeld(home_.lock(kId)));
}

TEST_F(DetachTest, ACollectorStartsTheSameWay) {
  const auto pid = StartCollector(home_, kId, RunLock::Take(home_.lock(kId)).value(), home_.supervisor_log(kId),
                                  {.muster_command = Script("echo \"said $*\"\n")});
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_THAT(LogAtTheEnd(), HasSubstr("said home collect 4 --lock-fd "));
}

TEST_F(DetachTest, AsAChildItIsWaitedFor) {
  const auto pid = Start(Script("exit 7\n"), /*as_child=*/true).value();
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(DetachTest, WhatCannotBeStartedLeavesNothingBehind) {
  for (const bool as_child : {false, true}) {
    const auto pid = Start(home_.path() + "/nothing", as_child);
    EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound) << pid.status();
    EXPECT_THAT(std::string(pid.status().message()), HasSubstr("/nothing"));
    EXPECT_FALSE(RunLock::IsHeld(home_.lock(kId)));
  }
}

TEST_F(DetachTest, ALogThatCannotBeWrittenIsNamed) {
  ASSERT_EQ(mkdir(home_.supervisor_log(kId).c_str(), 0777), 0);
  const auto pid = Start(Script("exit 0\n"));
  EXPECT_FALSE(pid.ok());
  EXPECT_THAT(std::string(pid.status().message()), HasSubstr(home_.supervisor_log(kId)));
}

}  // namespace
}  // namespace muster::detach_test
