// The example train_and_evaluate as a user runs it: alone, as four processes by hand in any order, and by one command;
// stopped early, restarted, and asked too late. Each of its processes ends without help.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::train_and_evaluate_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

const std::string kMuster = BinFolder() + "/muster";
const std::string kProgram = BinFolder() + "/train_and_evaluate";
constexpr int kSteps = 300;
constexpr int kManySteps = 600;  // after which even late gradients have done their work

// Processes by task.
using Cluster = std::map<std::string, std::unique_ptr<Process>>;

class TrainAndEvaluateProcesses : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(ProcessesWith(mark_.first + "=" + mark_.second), IsEmpty()); }

  ProcessOptions Options(std::vector<std::pair<std::string, std::string>> environment = {}) const {
    environment.push_back(mark_);
    return {.environment = std::move(environment)};
  }
  std::string model_dir() const { return scratch_ / "model"; }
  // Returns the program and its flags.
  std::vector<std::string> Program(int steps, const std::vector<std::string>& more = {"--throttle_secs=0.2"}) const {
    return Joined({kProgram, "--csv=" + SourceFolder() + "/examples/data/digits.csv", absl::StrCat("--steps=", steps),
                   "--save_steps=50", "--model_dir=" + model_dir()},
                  more);
  }
  std::unique_ptr<Process> Start(ByHand& cluster, const std::string& job, const std::vector<std::string>& program) {
    return std::make_unique<Process>(program, Options({{"TF_CONFIG", cluster.TfConfig(job, 0)}}));
  }
  // Starts them as in four terminals: each is ready before the next one is started.
  Cluster StartInOrder(ByHand& by_hand, const std::vector<std::string>& jobs, const std::vector<std::string>& program) {
    const std::map<std::string, std::string> sign = {{"ps", "serves at"},
                                                     {"chief", "computes with"},
                                                     {"worker", "computes with"},
                                                     {"evaluator", "Evaluates the checkpoints of "}};
    Cluster cluster;
    for (const std::string& job : jobs) {
      cluster[job] = Start(by_hand, job, program);
      cluster[job]->WaitForErr(sign.at(job));
    }
    return cluster;
  }
  static void ExpectAllEndByThemselves(Cluster& cluster) {
    for (auto& [job, process] : cluster) EXPECT_EQ(process->Wait(), 0) << job << ":\n" << process->err;
  }
  // The content of the one line "Test accuracy 0.972 after 400 steps".
  struct Measured {
    double accuracy = 0;
    int64_t steps = 0;
  };
  static Measured MeasuredBy(const std::string& out, const std::string& prefix = "") {
    const std::vector<std::string> lines = After(out, prefix + "Test accuracy ");
    EXPECT_EQ(lines.size(), 1) << out;
    Measured measured;
    if (lines.empty()) return measured;
    const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
    EXPECT_TRUE(absl::SimpleAtod(words.at(0), &measured.accuracy)) << lines[0];
    EXPECT_TRUE(absl::SimpleAtoi(words.at(2), &measured.steps)) << lines[0];
    return measured;
  }
  // Returns how the training in model_dir ended.
  nlohmann::json TrainingEnd() const {
    return nlohmann::json::parse(PosixFileSystem().ReadFile(model_dir() + "/training_ended.json").value());
  }
  // Returns the global steps of the evaluations in model_dir.
  std::vector<int64_t> Evaluated() const {
    std::vector<int64_t> steps;
    const std::string lines = PosixFileSystem().ReadFile(model_dir() + "/eval/metrics.jsonl").value();
    for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty()))
      steps.push_back(nlohmann::json::parse(std::string(line))["global_step"].get<int64_t>());
    return steps;
  }

  const LeftBehind left_;
  const ScratchFolder scratch_;
  const std::pair<std::string, std::string> mark_ = {
      "TRAIN_AND_EVALUATE_TEST", absl::StrCat(getpid(), testing::UnitTest::GetInstance()->current_test_info()->name())};
};

TEST_F(TrainAndEvaluateProcesses, AloneAndAgain) {
  Process alone(Program(kSteps), Options());
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("Running training and evaluation locally (non-distributed)."));
  EXPECT_THAT(alone.err, HasSubstr(absl::StrCat("Saving dict for global step ", kSteps, ": accuracy = ")));
  const Measured measured = MeasuredBy(alone.out);
  EXPECT_GE(measured.accuracy, 0.9);
  EXPECT_EQ(measured.steps, kSteps);
  EXPECT_EQ(Evaluated().front(), 50) << "not what training begins with, but the next checkpoint";
  EXPECT_EQ(Evaluated().back(), kSteps);
  EXPECT_EQ(TrainingEnd()["why"], "max_steps reached");

  const std::vector<int64_t> evaluated = Evaluated();
  Process again(Program(kSteps), Options());
  EXPECT_EQ(again.Wait(), 0) << again.err;
  EXPECT_EQ(again.out, alone.out) << "it knows what came of it";
  EXPECT_EQ(Evaluated(), evaluated);
}

class InOrder : public TrainAndEvaluateProcesses, public testing::WithParamInterface<std::vector<std::string>> {};

INSTANTIATE_TEST_SUITE_P(Orders, InOrder,
                         testing::Values(std::vector<std::string>{"ps", "chief", "worker", "evaluator"},
                                         std::vector<std::string>{"evaluator", "worker", "chief", "ps"},
                                         std::vector<std::string>{"worker", "evaluator", "ps", "chief"},
                                         std::vector<std::string>{"chief", "ps", "evaluator", "worker"}),
                         [](const testing::TestParamInfo<std::vector<std::string>>& info) {
                           return absl::StrJoin(info.param, "_");
                         });

TEST_P(InOrder, AllFourEndByThemselvesAndItIsAsGoodAsAlone) {
  ByHand by_hand(1, 1, /*chief=*/true);
  Cluster cluster = StartInOrder(by_hand, GetParam(), Program(kManySteps));
  ExpectAllEndByThemselves(cluster);
  const Measured together = MeasuredBy(cluster["evaluator"]->out);
  EXPECT_GE(together.steps, kManySteps);
  for (const char* job : {"ps", "chief", "worker"}) EXPECT_EQ(cluster[job]->out, "") << job;

  ASSERT_TRUE(PosixFileSystem().RemoveTree(model_dir()).ok());
  Process alone(Program(kManySteps), Options());
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  EXPECT_NEAR(together.accuracy, MeasuredBy(alone.out).accuracy, 0.05);
}

TEST_F(TrainAndEvaluateProcesses, AClusterWithNothingLeftToTrainEnds) {
  Process alone(Program(20), Options());
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  ByHand by_hand(1, 1, /*chief=*/true);
  Cluster cluster;
  for (const char* job : {"ps", "worker", "chief", "evaluator"}) cluster[job] = Start(by_hand, job, Program(20));
  ExpectAllEndByThemselves(cluster);
  EXPECT_EQ(MeasuredBy(cluster["evaluator"]->out).steps, 20);
}

TEST_F(TrainAndEvaluateProcesses, AnEvaluatorThatComesAfterTheEnd) {
  ByHand by_hand(1, 1, /*chief=*/true);
  Cluster training = StartInOrder(by_hand, {"ps", "chief", "worker"}, Program(kSteps));
  ExpectAllEndByThemselves(training);
  const std::unique_ptr<Process> evaluator =
      Start(by_hand, "evaluator", Program(kSteps, {"--start_delay_secs=100000", "--throttle_secs=100000"}));
  EXPECT_EQ(evaluator->Wait(), 0) << evaluator->err;
  EXPECT_GE(MeasuredBy(evaluator->out).accuracy, 0.9);
  EXPECT_EQ(Evaluated().size(), 1);
}

TEST_F(TrainAndEvaluateProcesses, EarlyStoppingEndsAllFour) {
  ByHand by_hand(1, 1, /*chief=*/true);
  Cluster cluster = StartInOrder(by_hand, {"evaluator", "ps", "chief", "worker"},
                                 Program(100000000, {"--stop_at_accuracy=0.5", "--throttle_secs=0"}));
  ExpectAllEndByThemselves(cluster);
  EXPECT_THAT(cluster["chief"]->err, HasSubstr("metric \"accuracy\" has value "));
  EXPECT_THAT(cluster["chief"]->err, HasSubstr("Requesting early stopping at global step "));
  EXPECT_THAT(cluster["evaluator"]->err, HasSubstr("Exiting evaluation: training has ended at global_step="));
  const nlohmann::json end = TrainingEnd();
  EXPECT_LT(end["global_step"], 100000000);
  EXPECT_EQ(end["max_steps"], 100000000);
  EXPECT_EQ(MeasuredBy(cluster["evaluator"]->out).steps, end["global_step"]);
}

TEST_F(TrainAndEvaluateProcesses, ByOneCommand) {
  Process run(Joined({kMuster, "run", "--chief", "1", "--ps", "1", "--workers", "1", "--evaluator", "--model_dir",
                      model_dir(), "--"},
                     Program(kSteps)),
              Options());
  EXPECT_EQ(run.Wait(), 0) << run.err;
  const Measured measured = MeasuredBy(run.out, "[evaluator:0] ");
  EXPECT_GE(measured.accuracy, 0.9);
  EXPECT_GE(measured.steps, kSteps);
  EXPECT_THAT(run.err, Not(HasSubstr("first failure"))) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("being ended"))) << "every process ends without help: " << run.err;
}

TEST_F(TrainAndEvaluateProcesses, CtrlCEndsEverybodyAndANextRunGoesOn) {
  const std::vector<std::string> command = {kMuster,     "run", "--chief",     "1",           "--ps",      "1",
                                            "--workers", "1",   "--evaluator", "--model_dir", model_dir(), "--"};
  Process run(Joined(command, Program(100000000)), Options());
  run.WaitForErr("Saving dict for global step ");
  run.WaitForErr("global_step/sec: ");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  const nlohmann::json end = TrainingEnd();
  EXPECT_EQ(end["why"], "interrupted");
  const int steps = end["global_step"].get<int>() + 100;
  Process next(Joined(command, Program(steps)), Options());
  EXPECT_EQ(next.Wait(), 0) << next.err;
  EXPECT_GE(MeasuredBy(next.out, "[evaluator:0] ").steps, steps);
  EXPECT_EQ(TrainingEnd()["why"], "max_steps reached");
}

TEST_F(TrainAndEvaluateProcesses, AnEvaluatorWithoutATrainingGivesUp) {
  ByHand by_hand(1, 1, /*chief=*/true);
  const auto evaluator = Start(by_hand, "evaluator", Program(kSteps, {"--patience_secs=0.1"}));
  EXPECT_EQ(evaluator->Wait(), 138) << evaluator->err;
  EXPECT_THAT(evaluator->err, HasSubstr("gave up: Estimator is not trained yet: no checkpoint in " + model_dir()));
}

TEST_F(TrainAndEvaluateProcesses, ThereIsOneEvaluator) {
  ByHand by_hand(1, 1, /*chief=*/true);
  Process second(Program(kSteps), Options({{"TF_CONFIG", by_hand.TfConfig("evaluator", 1)}}));
  EXPECT_EQ(second.Wait(), 2) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr("evaluator"), HasSubstr("1")));
  EXPECT_THAT(EntriesOf(scratch_.path()), IsEmpty()) << "nothing was started";
}

TEST_F(TrainAndEvaluateProcesses, WrongFlagsAreOneLine) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"--throttle_secs=-1", "--throttle_secs: '-1': accepted is a number from 0"},
      {"--stop_at_accuracy=good", "--stop_at_accuracy: 'good': accepted is a number from 0"},
      {"--throtle_secs=1", "(nearest: --throttle_secs)"}};
  for (const auto& [flag, text] : mistakes) {
    Process wrong({kProgram, flag}, Options());
    EXPECT_EQ(wrong.Wait(), 2) << wrong.err;
    EXPECT_THAT(wrong.err, HasSubstr(text));
    EXPECT_EQ(wrong.err.find('\n'), wrong.err.size() - 1) << wrong.err;
  }
}

}  // namespace
}  // namespace muster::train_and_evaluate_test
