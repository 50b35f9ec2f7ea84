// Experiments whose evaluator is alone on a host that can't be used: the others train, and that is said.
#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/process/testing/engines.h"

namespace muster::evaluator_host_test {
namespace {

using ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

class EvaluatorHost : public OnEveryEngine {
 protected:
  // Writes an experiment with a master, a worker and an evaluator that run these commands, and more of `train`.
  void WriteCluster(const std::string& trainers, const std::string& evaluator, const std::string& more = "") {
    Write("run.sh", absl::StrCat("case $TF_CONFIG in\n  *'\"type\":\"evaluator\"'*) ", evaluator, " ;;\n  *) ",
                                 trainers, " ;;\nesac\n"));
    Write("muster.yml", absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {distributed: "
                                     "{master: 1, worker: 1, evaluator: true}}\n",
                                     more, "  run: sh run.sh\n"));
  }
};

INSTANTIATE_TEST_SUITE_P(, EvaluatorHost, ::testing::Values("ssh"), EngineName);

// The hosts see neither the code nor OUTPUT_DIR, and those that are used get and give both.
TEST_P(EvaluatorHost, OneThatDoesNotExistIsLeftOut) {
  RunOn("h1,nowhere,h2", "placement: {master: h1, evaluator: nowhere, worker: h2}\n");
  WriteCluster("cat $MUSTER_SETUP_DIR/made; echo trained > $OUTPUT_DIR/$(uname -n)", "echo evaluating on $(uname -n)",
               "  setup:\n    run: echo set up > $MUSTER_SETUP_DIR/made\n");
  const std::string shown = Out({"train"});
  EXPECT_THAT(shown, ContainsRegex("nowhere isn't used: nowhere [^\n]*; evaluator runs on h1 instead\n"));
  EXPECT_THAT(LinesOf(shown, "1.evaluator"), Contains("evaluating on h1"));
  for (const std::string task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(shown, task), Contains("set up"));
  const auto tasks = TasksOf("1");
  EXPECT_EQ(tasks["1.evaluator"]["host"], "h1");
  EXPECT_EQ(tasks["1.setup.2"]["state"], "KILLED");
  EXPECT_EQ(tasks["1.setup.2"]["reason"], "its host isn't used");
  for (const std::string setup : {"1.setup.1", "1.setup.3"}) EXPECT_EQ(tasks[setup]["state"], "FINISHED") << setup;
  const std::string output = Json({"show", "1"})["output_dir"].get<std::string>();
  for (const std::string host : {"h1", "h2"}) EXPECT_EQ(Read(absl::StrCat(output, "/", host)), "trained\n");
}

TEST_P(EvaluatorHost, OneThatIsUnpluggedIsNotWaitedFor) {
  RunOn("h1,h3", "placement: {master: h1, worker: h1, evaluator: h3}\n");
  WriteCluster("echo trained", "echo evaluating on $(uname -n)");
  hosts().Cut("h3");
  const std::string shown = Out({"train"});
  hosts().Heal("h3");
  EXPECT_THAT(shown, ContainsRegex("h3 isn't used: [^\n]*; evaluator runs on h1 instead\n"));
  EXPECT_THAT(LinesOf(shown, "1.evaluator"), Contains("evaluating on h1"));
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains("trained"));
}

TEST_P(EvaluatorHost, OneThatIsUnpluggedDuringTrainingEndsNobody) {
  const ScriptGate gate(Aside("gate"));
  RunOn("h1,h3", "placement: {master: h1, worker: h1, evaluator: h3}\n");
  WriteCluster(absl::StrCat("echo training; read line < ", gate.path(), "; echo trained"),
               "echo evaluating on $(uname -n); exec sleep 1000", absl::StrCat("  output: ", Aside("out"), "\n"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("evaluating on h3");
  hosts().Crash("h3");
  train->WaitForOut("h3 hasn't been heard for 3s");
  gate.LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->out;
  hosts().Restart("h3");
  EXPECT_THAT(train->out, HasSubstr("evaluator is out of reach, and isn't waited for"));
  EXPECT_THAT(train->out, Not(HasSubstr("h3 is lost")));
  for (const std::string task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("trained"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

}  // namespace
}  // namespace muster::evaluator_host_test
