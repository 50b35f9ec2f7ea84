// Experiments whose supervisor and guard are both killed (-9), as by the kernel when their control group
// has no memory left: what their programs have become is seen, named and ended by the next commands.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/backends/local/guard.h"
#include "muster/launch/backends/local/kernel_file.h"
#include "tests/process/testing/experiments.h"

namespace muster::experiment_left_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

// Returns the process with this command line.
pid_t ProcessCalled(const std::string& title) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = ReadKernelFile(entry.path().string() + "/cmdline").value_or("");
    if (line.c_str() == title) return std::stoi(entry.path().filename());
  }
  ADD_FAILURE() << "no process is called " << title;
  return 0;
}

// Without agents, on this machine. What a dead agent and its guard leave on a host: SshFailure and
// SshExperiment.GcOfHostsEndsWhatDeadJobsHaveLeft.
class ExperimentLeft : public ExperimentsTest {
 protected:
  // Starts an experiment whose task prints "pid N" of the program that it has started, and returns N.
  pid_t Start(const std::string& run) {
    WriteExperiment("run: " + run);
    train_ = StartMuster({"train"});
    AwaitLines(*train_, "1.master", 2);  // RUNNING, and the number
    for (const std::string& line : LinesOf(train_->out, "1.master"))
      if (absl::StartsWith(line, "pid ")) return std::stoi(line.substr(4));
    ADD_FAILURE() << train_->out;
    return 0;
  }

  // `program`: a process of the experiment.
  void KillBoth(pid_t program) {
    const std::string environment = ReadKernelFile(absl::StrCat("/proc/", program, "/environ")).value_or("");
    const size_t at = environment.find("MUSTER_RUN_ID=");
    ASSERT_NE(at, std::string::npos);
    const pid_t guard = ProcessCalled(Guard::Title(environment.substr(at + 14).c_str()));
    ASSERT_GT(guard, 0);
    Watched both;
    both.Add(guard);
    ASSERT_EQ(kill(guard, SIGKILL), 0);
    KillSupervisor("1");
    both.WaitForEnds();
    EXPECT_EQ(train_->Wait(), 137);
  }

  std::unique_ptr<Process> train_;
};

constexpr char kGrandchild[] = "sleep 1000 & echo pid $!; wait";

TEST_F(ExperimentLeft, StatusNamesWhatKillEnds) {
  const pid_t program = Start(kGrandchild);
  Watched left;
  left.Add(program);
  KillBoth(program);
  EXPECT_THAT(train_->err, HasSubstr("its supervisor was killed; muster train --experiment 1 goes on with it"));
  for (const std::string command : {"status", "ls"}) {
    const Said said = Muster({command});
    EXPECT_EQ(said.exit_code, 0);
    EXPECT_EQ(said.err,
              absl::StrCat("muster: experiment 1 has lost its supervisor; 1 process of it still runs: muster ",
                           "kill 1 ends it (", program, ")\n"));
  }
  EXPECT_THAT(Muster({"status"}).out, HasSubstr("muster kill 1 ends it"));
  EXPECT_THAT(Muster({"status", "1"}).out,
              AllOf(HasSubstr("FAILED"), HasSubstr("muster train --experiment 1"), HasSubstr("muster kill 1 ends it")));
  WriteExperiment("run: echo another");
  EXPECT_THAT(Muster({"train"}).err, HasSubstr("1 process of it still runs: muster kill 1 ends it"));
  const Said ended = Muster({"kill", "1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("muster: ended 1 process that experiment 1 had left behind\n"));
  left.WaitForEnds();
  EXPECT_EQ(Muster({"status"}).err, "");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 1) << "it had ended before";
}

TEST_F(ExperimentLeft, TheNextAttemptEndsWhatTheLastHasLeft) {
  const pid_t program = Start(kGrandchild);
  Watched left;
  left.Add(program);
  KillBoth(program);
  WriteExperiment("run: echo again");
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("muster: ended 1 process that experiment 1 had left behind\n"));
  left.WaitForEnds();
}

// A task that is one program is the supervisor's own child, which the kernel ends with it.
TEST_F(ExperimentLeft, AProgramWithoutAShellAroundItDiesWithItsSupervisor) {
  Write("program", "#!/bin/sh\necho pid $$\nexec sleep 1000\n");
  std::filesystem::permissions(project() + "/program", std::filesystem::perms::owner_all);
  const pid_t program = Start("./program");
  EXPECT_EQ(TasksOf("1")["1.master"]["pid"], program);
  Watched left;
  left.Add(program);
  KillBoth(program);
  left.WaitForEnds();
  EXPECT_EQ(Muster({"status"}).err, "");
}

// The supervisor alone: the guard ends all, and nothing is named.
TEST_F(ExperimentLeft, TheGuardEndsWhatASupervisorLeaves) {
  const pid_t program = Start(kGrandchild);
  Watched left;
  left.Add(program);
  KillSupervisor("1");
  const Said status = Muster({"status", "1"});
  EXPECT_THAT(status.err, Not(HasSubstr("still run")));
  left.WaitForEnds();
  EXPECT_EQ(train_->Wait(), 137);
}

}  // namespace
}  // namespace muster::experiment_left_test
