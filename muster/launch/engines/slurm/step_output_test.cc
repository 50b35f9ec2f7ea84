#include "muster/launch/engines/slurm/step_output.h"

#include <gmock/gmock.h>

namespace muster::step_output_test {
namespace {

using Hosts = std::vector<std::string>;

const Hosts kHosts = {"n1", "n2", "n3"};

TEST(StepOutputTest, ALabelSaysWhoseLineItIs) {
  EXPECT_EQ(ReadStepLine("1: slurmstepd-n2: error: execve(): /x/muster: No such file or directory", kHosts),
            (StepLine{{"n2"}, "slurmstepd-n2: error: execve(): /x/muster: No such file or directory"}));
  EXPECT_EQ(ReadStepLine(" 0: a: b", kHosts), (StepLine{{"n1"}, "a: b"}));
  EXPECT_EQ(ReadStepLine("02: x\x1b[1m", kHosts), (StepLine{{"n3"}, "x\\x1b[1m"}));
  EXPECT_EQ(ReadStepLine("3: x", kHosts), (StepLine{{}, "3: x"}));
}

TEST(StepOutputTest, SrunSaysWhoseAgentHasEnded) {
  EXPECT_EQ(ReadStepLine("srun: error: n2: task 1: Killed", kHosts), (StepLine{{"n2"}, "Killed", true}));
  EXPECT_EQ(ReadStepLine("srun: error: n[1,3]: tasks 0,2: Exited with exit code 2", kHosts),
            (StepLine{{"n1", "n3"}, "Exited with exit code 2", true}));
  EXPECT_EQ(ReadStepLine("srun: error: n1: task 0: Segmentation fault (core dumped)", kHosts),
            (StepLine{{"n1"}, "Segmentation fault (core dumped)", true}));
  EXPECT_EQ(ReadStepLine("srun: error: Node failure on n3", kHosts), (StepLine{{"n3"}, "Node failure on n3", true}));
  const std::string launch = "Task launch for StepId=3.0 failed on node n2: Communication connection failure";
  EXPECT_EQ(ReadStepLine("srun: error: " + launch, kHosts), (StepLine{{"n2"}, launch, true}));
}

TEST(StepOutputTest, TheRestIsAboutTheStep) {
  for (const std::string line :
       {"srun: error: Unable to confirm allocation for job 7: Invalid job id specified", "srun: Job step aborted",
        "srun: error: n7: task 0: Killed", "srun: error: n[1: task 0: Killed", "n1: task 0: Killed", ""})
    EXPECT_EQ(ReadStepLine(line, kHosts), (StepLine{{}, line}));
}

TEST(StepOutputTest, SrunSaysThatTheJobHasEnded) {
  for (const char* line : {"srun: error: Slurm job 2 has expired",
                           "srun: error: Unable to confirm allocation for job 7: Invalid job id specified",
                           "srun: error: Unable to create step for job 7: Job/step already completing or completed"})
    EXPECT_TRUE(SaysThatJobHasEnded(line)) << line;
  for (const char* line : {"slurmstepd: error: a job that has expired", "srun: error: n1: task 0: Killed",
                           "srun: error: Unable to confirm allocation for job 7: Unable to contact slurm controller"})
    EXPECT_FALSE(SaysThatJobHasEnded(line)) << line;
}

TEST(StepOutputTest, SrunSaysThatNobodyAnswers) {
  for (const char* line :
       {"srun: error: Unable to confirm allocation for job 7: Unable to contact slurm controller "
        "(connect failure)",
        "srun: error: Unable to confirm allocation for job 7: Socket timed out on send/recv operation",
        "srun: error: Unable to create step for job 7: Zero Bytes were transmitted or received"})
    EXPECT_TRUE(SaysThatNobodyAnswers(line)) << line;
  for (const char* line : {"srun: error: Unable to confirm allocation for job 7: Invalid job id specified",
                           "srun: error: Unable to contact slurm controller", "srun: Job step aborted"})
    EXPECT_FALSE(SaysThatNobodyAnswers(line)) << line;
}

}  // namespace
}  // namespace muster::step_output_test
