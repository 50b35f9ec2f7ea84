// From inside a step of Slurm, as a user works who has a shell on a node: `srun --pty bash` in an allocation.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/system/shell_word.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_steps_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

class SlurmSteps : public SlurmExperiment {
 protected:
  // Runs it in a step of so many tasks on the first node of an allocation, which has the terminal of this command. Both
  // outputs are in `out`, with a terminal's ends of lines.
  Said OnTerminal(const std::vector<std::string>& options, const std::vector<std::string>& words, int tasks = 1) {
    std::vector<std::string> quoted;
    for (const std::string& word :
         slurm().On("h0", Joined(Joined({"salloc"}, options),
                                 Joined({"srun", "--nodes=1", absl::StrCat("--ntasks=", tasks), "--pty"}, words))))
      quoted.push_back(ShellWord(word));
    Process terminal(
        {"/usr/bin/env", "script", "--quiet", "--return", "--command", absl::StrJoin(quoted, " "), "/dev/null"},
        Options());
    const int exit_code = terminal.Wait();
    return {exit_code, terminal.out, terminal.err};
  }
  // Runs `muster ARGUMENTS` in a step of an allocation of one CPU of h1.
  Said InStep(const std::vector<std::string>& arguments) {
    Process process(slurm().On("h0", Joined({"salloc", "--ntasks=1", "--nodelist=h1", "srun"},
                                            Joined({BinFolder() + "/muster"}, arguments))),
                    Options());
    const int exit_code = process.Wait();
    return {exit_code, process.out, process.err};
  }
};

// The chief ends once the others have said something.
TEST_F(SlurmSteps, ARunFromAShellOnANodeHasAllNodesOfTheJob) {
  const std::string script =
      "echo runs on $(hostname); : >said.$(hostname); [ $(hostname) = h1 ] || exit 0; "
      "until [ -e said.h2 ] && [ -e said.h3 ]; do :; done; exit 7";
  const Said said = OnTerminal(
      {"--nodes=3", "--nodelist=h1,h2,h3"},
      {"sh", "-c", "[ -t 0 ] && [ -t 1 ] && echo a terminal on $(hostname) && exec \"$@\"", "sh",
       BinFolder() + "/muster", "run", "--on", "slurm", "--ps", "0", "--workers", "3", "--", "sh", "-c", script});
  EXPECT_EQ(said.exit_code, 7) << said.out;
  EXPECT_THAT(said.out, AllOf(HasSubstr("a terminal on h1\r\n"), HasSubstr("of Slurm: 3 nodes"),
                              HasSubstr("runs on h1\r\n"), HasSubstr("runs on h2\r\n"), HasSubstr("runs on h3\r\n")));
}

TEST_F(SlurmSteps, AProgramOnATerminalIsAloneAndSaysSo) {
  const Said said = OnTerminal({"--nodes=2"}, {BinFolder() + "/toy_worker", "--width=10", "--steps=5"});
  EXPECT_EQ(said.exit_code, 0) << said.out;
  EXPECT_THAT(said.out, AllOf(HasSubstr("toy_worker: alone: Slurm's step "), HasSubstr(" has one task\r\n"),
                              HasSubstr("Loss for final step")));
}

// The first of them has the terminal, and of the others nothing is seen but how they end.
TEST_F(SlurmSteps, TasksOfAStepWithATerminalAreRefused) {
  const Said said =
      OnTerminal({"--nodes=1", "--ntasks=2"}, {BinFolder() + "/toy_worker", "--width=10", "--steps=5", "--ps=1"}, 2);
  EXPECT_EQ(said.exit_code, 2) << said.out;
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("has several tasks, but with --pty it has one terminal, that of task 0; "),
                    ContainsRegex("task(s 0-1| 1): Exited with exit code 2"), Not(HasSubstr("Loss for final step"))));
}

// Its step ends with its allocation, whatever becomes of the job.
TEST_F(SlurmSteps, AnExperimentFromAStepIsAJobOfItsOwn) {
  job_ = "nodes: 2, nodelist: \"h2,h3\"";
  WriteExperiment(
      "run: 'echo job $SLURM_JOB_ID on $SLURM_JOB_NODELIST; [ -e $OUTPUT_DIR/again ] || { : >$OUTPUT_DIR/again; exit "
      "3; }'");
  const Said first = InStep({"train"});
  EXPECT_EQ(first.exit_code, 3) << first.out << first.err;
  const Said second = InStep({"train", "--experiment", "1"});
  EXPECT_EQ(second.exit_code, 0) << second.out << second.err;
  for (const Said& said : {first, second}) {
    const std::vector<std::string> granted = After(said.err, "salloc: Granted job allocation ");
    ASSERT_EQ(granted.size(), 1U) << said.err;
    EXPECT_THAT(said.err, HasSubstr("experiment 1 is job "));
    EXPECT_THAT(said.out, AllOf(HasSubstr(" on h[2-3]\n"), Not(HasSubstr("job " + granted[0] + " on"))));
  }
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

}  // namespace
}  // namespace muster::slurm_steps_test
