// The place from which the tests for every engine run once more (`slurm_pty`, tests/process/testing/beds): a terminal
// on a node, in a step of an allocation.
#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/process/testing/beds/engine_bed.h"
#include "tests/process/testing/process.h"

namespace muster::slurm_pty_test {
namespace {

using ::testing::MatchesRegex;

class SlurmPtyPlace : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { EndBeds(); }
  void SetUp() override {
    if (const std::string why = WhyNoBed("slurm_pty"); !why.empty()) GTEST_SKIP() << why;
  }
  static std::vector<std::string> InStep(const std::string& script) {
    return BedOf("slurm_pty")->OnH0({"sh", "-c", script}, "/nonexistent/index");
  }
};

TEST_F(SlurmPtyPlace, ACommandIsInAStepOnATerminalAndItsOutputsAndExitCodeCome) {
  Process process(InStep("[ -t 0 ] && echo $(hostname) job $SLURM_JOB_ID step $SLURM_STEP_ID; echo why >&2; exit 7"));
  EXPECT_EQ(process.Wait(), 7);
  EXPECT_THAT(process.out, MatchesRegex("h5 job [0-9]+ step [0-9]+\n"));
  EXPECT_EQ(process.err, "why\n");
}

TEST_F(SlurmPtyPlace, CtrlCReachesIt) {
  Process process(InStep("trap 'echo interrupted; exit 3' INT; echo begins; read line </dev/tty"));
  process.WaitForOut("begins\n");
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 3) << process.err;
  EXPECT_EQ(process.out, "begins\ninterrupted\n");
}

TEST_F(SlurmPtyPlace, ItEndsWithItsTerminal) {
  Process process(InStep("echo begins; read line </dev/tty"));
  process.WaitForOut("begins");
  process.Signal(SIGHUP);
  EXPECT_EQ(process.Reap(), 128 + SIGHUP);
  BedOf("slurm_pty")->AwaitNothingLeft();
}

}  // namespace
}  // namespace muster::slurm_pty_test
