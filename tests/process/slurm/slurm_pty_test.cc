// What must hold of experiments on every engine (tests/process/experiment), from a terminal on a node: each command
// runs in a step of its own, by `srun --pty`, of an allocation that is held meanwhile. The experiments are other jobs.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/launch/system/shell_word.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_pty_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr, ::testing::Not;

// stderr of a command comes at its end: on a terminal both outputs are one. $0: the command in a step, $1: a file that
// gets its stderr. The terminal's input never ends, as that of a person who doesn't type.
constexpr char kOnTerminal[] =
    "mkfifo \"$1.in\"; exec <>\"$1.in\"; rm \"$1.in\"; script --quiet --return --command \"$0\" /dev/null; code=$?; "
    "cat \"$1\" >&2; rm \"$1\"; exit $code";
// In the step. Ends of lines stay as they are.
constexpr char kInStep[] = "stty -opost -echo; exec \"$@\" 2>\"$0\"";

// Begin of scripts of tasks: what the worker does, then what the master does.
std::string ByRole(const std::string& worker, const std::string& master) {
  return absl::StrCat("case $TF_CONFIG in *\\\"type\\\":\\\"worker\\\"*) ", worker, ";; *) ", master, ";; esac");
}

class SlurmPtySuite : public SlurmExperiment {
 protected:
  void SetUp() override {
    SlurmExperiment::SetUp();
    if (IsSkipped()) return;
    const std::string said = slurm().Ask({"salloc", "--no-shell", "--ntasks=1", "--nodelist=h1"});
    const std::vector<std::string> granted = After(said, "salloc: Granted job allocation ");
    ASSERT_EQ(granted.size(), 1U) << said;
    held_ = granted[0];
    job_ = "nodes: 2, nodelist: \"h2,h3\"";
  }
  void TearDown() override {
    if (!held_.empty()) slurm().Cancel(held_);
    SlurmExperiment::TearDown();
  }

  std::vector<std::string> InStep(const std::vector<std::string>& words) const {
    const std::string errors = Aside(absl::StrCat("stderr.", ++commands_));
    std::vector<std::string> quoted;
    for (const std::string& word : Joined(
             {"srun", "--jobid=" + held_, "--overlap", "--nodes=1", "--ntasks=1", "--pty", "sh", "-c", kInStep, errors},
             words))
      quoted.push_back(ShellWord(word));
    return slurm().On("h0", {"env", "NO_COLOR=1", "sh", "-c", kOnTerminal, absl::StrJoin(quoted, " "), errors});
  }
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override {
    if (held_.empty()) return SlurmExperiment::Command(arguments);
    // NOLINTNEXTLINE(bugprone-parent-virtual-call): without the login host of the nearer one.
    return InStep(ExperimentsTest::Command(arguments));
  }

  std::string held_;  // the number of the allocation

 private:
  mutable int commands_ = 0;
};

TEST_F(SlurmPtySuite, CommandsRunInAStepOnATerminal) {
  Process process(InStep({"sh", "-c", "[ -t 0 ] && [ -t 1 ] && echo $(hostname) $SLURM_JOB_ID $SLURM_STEP_ID; exit 7"}),
                  Options());
  EXPECT_EQ(process.Wait(), 7) << process.err;
  EXPECT_THAT(process.out, HasSubstr(absl::StrCat("h1 ", held_, " 0\n")));
}

TEST_F(SlurmPtySuite, AnExperimentTrainsToItsEndAndIsShownAndRunAgain) {
  WriteCluster("{worker: 2}",
               "echo trains in job $SLURM_JOB_ID; echo \"{\\\"accuracy\\\": 0.5}\" >$OUTPUT_DIR/metrics.json");
  const Said train = Muster({"train"});
  EXPECT_EQ(train.exit_code, 0) << train.out << train.err;
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(train.out, task),
                AllOf(Contains(HasSubstr("trains in job ")), Not(Contains("trains in job " + held_))));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_EQ(TasksOf("1").size(), 2U);
  EXPECT_THAT(Out({"status"}), HasSubstr("FINISHED"));
  EXPECT_THAT(Out({"show", "1"}), HasSubstr("experiments/1/job.sh"));
  EXPECT_THAT(Out({"results", "1"}), HasSubstr("0.5"));
  EXPECT_THAT(LinesOf(Out({"logs", "1"}), "1.worker.1"), Contains(HasSubstr("trains in job ")));
  EXPECT_THAT(LinesOf(Out({"rerun", "1"}), "2.master"), Contains(HasSubstr("trains in job ")));
  EXPECT_EQ(StateOf("2"), "FINISHED");
}

TEST_F(SlurmPtySuite, OneIsFollowedAndKilled) {
  WriteExperiment("run: 'echo begins; sleep 600'");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins");
  const auto logs = StartMuster({"logs", "1", "-f"});
  logs->WaitForOut("begins");
  EXPECT_THAT(Muster({"monitor", "1", "--once"}).out, HasSubstr("1.master"));
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(logs->Wait(), 0) << logs->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
}

TEST_F(SlurmPtySuite, AnAttemptThatFailsHasItsExitCodeAndIsGoneOnWith) {
  WriteExperiment("run: '[ -e $OUTPUT_DIR/saved ] && echo resumed || { : >$OUTPUT_DIR/saved; exit 3; }'");
  const Said failed = Muster({"train"});
  EXPECT_EQ(failed.exit_code, 3) << failed.out << failed.err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(LinesOf(again.out, "1.master"), Contains("resumed"));
  EXPECT_EQ(Json({"status", "1"})["attempt"], 2);
}

TEST_F(SlurmPtySuite, AGridOfTwoIsTwoJobs) {
  job_ = "nodes: 1, nodelist: h2";
  WriteExperiment("parameters: {n: [1, 2]}\nrun: 'echo has {{ n }}'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
  EXPECT_THAT(said.err, HasSubstr("experiment 1 has 2 jobs of Slurm"));
  for (const char* run : {"1", "2"}) {
    EXPECT_EQ(StateOf(absl::StrCat("1.", run)), "FINISHED");
    EXPECT_THAT(Out({"logs", absl::StrCat("1.", run)}), HasSubstr(absl::StrCat("has ", run)));
  }
}

TEST_F(SlurmPtySuite, AKilledWorkerIsStartedAgain) {
  const ScriptGate gate(Aside("gate"));
  WriteCluster("{worker: 2}", ByRole("[ -e $OUTPUT_DIR/was ] || { : >$OUTPUT_DIR/was; kill -9 $$; }; echo again",
                                     "read line <" + gate.path()));
  const auto train = StartMuster({"train"});
  train->WaitForOut("again");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["restarts"], 1);
}

TEST_F(SlurmPtySuite, AFailedMasterEndsTheOthersAndIsTheFirstCause) {
  WriteCluster("{worker: 2}", ByRole("echo begins; : >$OUTPUT_DIR/begun; sleep 600",
                                     "until [ -e $OUTPUT_DIR/begun ]; do sleep 0.1; done; echo why >&2; exit 3"));
  const Said train = Muster({"train"});
  EXPECT_EQ(train.exit_code, 3) << train.out << train.err;
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["reason"], "ended by muster, because master exited with 3");
  const std::string reason = Json({"status", "1"})["reason"].get<std::string>();
  EXPECT_THAT(reason, AllOf(HasSubstr("master"), HasSubstr("exited with 3")));
  EXPECT_THAT(train.err, HasSubstr(reason));
}

}  // namespace
}  // namespace muster::slurm_pty_test
