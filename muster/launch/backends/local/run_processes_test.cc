#include "muster/launch/backends/local/run_processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/backends/local/guard.h"
#include "muster/launch/system/process_mark.h"
#include "muster/launch/system/random_hex.h"

namespace muster::run_processes_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::Pair, ::testing::UnorderedElementsAre;

// A program that waits, with this environment.
class Sleeper {
 public:
  explicit Sleeper(const std::vector<std::string>& environment, rlim_t mark = 0) {
    int started[2];
    EXPECT_EQ(pipe2(started, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      std::vector<char*> variables;
      for (const std::string& variable : environment) variables.push_back(const_cast<char*>(variable.c_str()));
      variables.push_back(nullptr);
      if (mark != 0) SetMark(mark);
      setsid();
      char* const arguments[] = {const_cast<char*>("/bin/sleep"), const_cast<char*>("1000"), nullptr};
      execve(arguments[0], arguments, variables.data());
      _exit(127);
    }
    close(started[1]);
    char none;
    EXPECT_EQ(read(started[0], &none, 1), 0);  // its end: the program runs
    close(started[0]);
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST(RunProcesses, AreFoundForSeveralRunsAtOnce) {
  const std::string one = RandomHex(8), two = RandomHex(8), none = RandomHex(8);
  const Sleeper first({"A=1", "MUSTER_RUN_ID=" + one}), second({"MUSTER_RUN_ID=" + two, "B="}), nobody({}),
      similar({"XMUSTER_RUN_ID=" + one, "MUSTER_RUN_ID=" + one + "0"});
  EXPECT_THAT(ProcessesOfRuns({one, two, none}),
              UnorderedElementsAre(Pair(one, ElementsAre(first.pid())), Pair(two, ElementsAre(second.pid()))));
  EXPECT_THAT(ProcessesOfRun(none), IsEmpty());
}

TEST(RunProcesses, ThoseOfOneBackendAreKilledAndTheOthersOfTheRunLive) {
  const std::string run_id = RandomHex(8), one = RandomHex(16), other = RandomHex(16);
  const Sleeper of_one({"MUSTER_RUN_ID=" + run_id, "MUSTER_AGENT_ID=" + one}),
      of_other({"MUSTER_RUN_ID=" + run_id, "MUSTER_AGENT_ID=" + other});
  EXPECT_EQ(KillProcessesOfAgent(one), 1);
  EXPECT_THAT(ProcessesOfRun(run_id), ElementsAre(of_other.pid()));
  EXPECT_EQ(KillProcessesOfRun(run_id), 1);
}

TEST(RunProcesses, ThoseOfABackendWithoutAnyVariablesAreKilledByTheirMark) {
  const std::string one = RandomHex(16), other = RandomHex(16);
  const Sleeper of_one({}, MarkOf(one)), of_other({}, MarkOf(other)), of_nobody({});
  EXPECT_EQ(KillProcessesOfAgent(one), 1);
  EXPECT_EQ(KillProcessesOfAgent(one), 0) << "it is a zombie";
  EXPECT_EQ(kill(of_nobody.pid(), 0), 0);
  EXPECT_EQ(KillProcessesOfAgent(other), 1) << "it has lived until now";
}

// Its guard is alive until the launcher lets it go, and then ends what it guards.
TEST(RunProcesses, TheGuardOfARunIsWaitedFor) {
  const std::string run_id = RandomHex(8), agent_id = RandomHex(16);
  auto guard = Guard::Fork(run_id, agent_id).value();
  auto left =
      std::make_unique<Sleeper>(std::vector<std::string>{"MUSTER_RUN_ID=" + run_id, "MUSTER_AGENT_ID=" + agent_id});
  const pid_t guard_pid = guard->pid();
  guard.reset();
  AwaitGuard(run_id);
  EXPECT_THAT(ProcessesOfRun(run_id), IsEmpty());
  waitpid(guard_pid, nullptr, 0);
  AwaitGuard(run_id);  // returns at once
}

}  // namespace
}  // namespace muster::run_processes_test
