// The examples' run.sh at reduced size, as a user starts them: each ends without help, prints how well it has learned,
// and leaves nothing behind. Also their answers to what can't be trained.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"

namespace muster::examples_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::MatchesRegex, ::testing::Not;

const std::string kMuster = BinFolder() + "/muster";
const std::string kExamples = SourceFolder() + "/examples/";

struct Example {
  std::string script;  // path below examples
  std::string flags;   // flags that make it short, separated by spaces
  std::string prefix = "[worker:0] ";
};

std::vector<Example> Examples() {
  return {{"non_distributed/run.sh", "--steps=30", ""},
          {"distributed_setup/run.sh", "--steps=30"},
          {"distributed_setup/run_sup.sh", "--steps=30"},
          {"hogwild/run.sh", "--steps=30"},
          {"downpour/run.sh", "--steps=12"},
          {"downpour_easy/run.sh", "--steps=12"},
          {"agn/run.sh", "--steps=12"},
          {"synchronous_sgd/run.sh", "--steps=15"},
          {"synchronous_sgd_different_learning_rates/run.sh", "--steps=15"},
          {"sagn/run.sh", "--steps=5"},
          {"dynsgd/run.sh", "--steps=12"},
          {"aeasgd/run.sh", "--steps=8"},
          {"aeamsgd/run.sh", "--steps=8"},
          {"diloco/run.sh", "--steps=2 --window=5"},
          {"all_reduce/run.sh", "--steps=15"},
          {"one_shot_averaging/run.sh", "--steps=15"},
          {"ensemble/run.sh", "--steps=15"},
          {"train_and_evaluate/run.sh", "--steps=30", "[evaluator:0] "}};
}

// Runs in a folder of its own, in which nothing may be left.
class ExampleRun : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(ProcessesWith(mark_.first + "=" + mark_.second), IsEmpty());
    EXPECT_THAT(EntriesOf(scratch_.path()), IsEmpty());
  }

  ProcessOptions Options(const std::string& programs = BinFolder()) const {
    return {.environment = {mark_, {"MUSTER_BIN_DIR", programs}}, .directory = scratch_.path()};
  }
  static std::vector<std::string> Script(const std::string& script, const std::string& flags) {
    return Joined({"/bin/bash", kExamples + script}, absl::StrSplit(flags, ' ', absl::SkipEmpty()));
  }
  // Expects a usage error that contains `texts`, and no training.
  void ExpectUsageError(const std::vector<std::string>& words, const std::vector<std::string>& texts) const {
    Process run(words, Options());
    EXPECT_EQ(run.Wait(), 2) << run.out << run.err;
    for (const std::string& text : texts) EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_THAT(run.out, Not(HasSubstr("Test accuracy")));
  }

 private:
  const LeftBehind left_;
  const ScratchFolder scratch_;
  const std::pair<std::string, std::string> mark_ = {
      "EXAMPLES_TEST", absl::StrCat(getpid(), testing::UnitTest::GetInstance()->current_test_info()->name())};
};

class EachExample : public ExampleRun, public testing::WithParamInterface<Example> {};

INSTANTIATE_TEST_SUITE_P(Examples, EachExample, testing::ValuesIn(Examples()),
                         [](const testing::TestParamInfo<Example>& info) {
                           const std::string& script = info.param.script;
                           std::string name = script.substr(0, script.find('.'));
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

TEST_P(EachExample, RunsToItsEndAndLeavesNothing) {
  const Example& example = GetParam();
  EXPECT_EQ(access((kExamples + example.script).c_str(), X_OK), 0);
  Process run(Script(example.script, example.flags), Options());
  EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
  EXPECT_THAT(After(run.out, example.prefix + "Test accuracy "),
              ElementsAre(MatchesRegex("(0\\.[0-9]+|1\\.000) after [0-9]+ steps")))
      << run.out << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("first failure"))) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("being ended"))) << "every ps ends by itself: " << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("global step has not moved"))) << "a warning about what is meant so: " << run.err;
}

TEST_P(EachExample, SaysThatItIsNotBuilt) {
  Process run(Script(GetParam().script, ""), Options("/nowhere"));
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_EQ(run.err, "not built yet: ./dev build\n");
}

TEST_F(ExampleRun, HelpNamesTheAlgorithmAndHasWordsForValues) {
  const std::vector<std::pair<std::string, std::string>> programs = {
      {"digits", "--algorithm:"},
      {"distributed_setup", "hogwild:"},
      {"distributed_setup_supervisor", "hogwild:"},
      {"hogwild", "hogwild:"},
      {"downpour", "downpour:"},
      {"downpour_easy", "--server_rule=adagrad:learning_rate=0.01"},
      {"agn", "agn:"},
      {"synchronous_sgd", "synchronous:"},
      {"synchronous_sgd_different_learning_rates", "synchronous_different_rates:"},
      {"sagn", "sagn:"},
      {"dynsgd", "dynsgd:"},
      {"aeasgd", "aeasgd:"},
      {"aeamsgd", "aeamsgd:"},
      {"diloco", "diloco:"},
      {"all_reduce", "all_reduce:"},
      {"one_shot_averaging", "one-shot averaging:"},
      {"ensemble", "an ensemble"},
      {"train_and_evaluate", "Estimator"}};
  for (const auto& [program, algorithm] : programs) {
    Process help({BinFolder() + "/" + program, "--help"}, Options());
    EXPECT_EQ(help.Wait(), 0) << program << help.err;
    EXPECT_THAT(help.out.substr(0, help.out.find("Usage:")), HasSubstr(algorithm)) << program;
    for (const std::string& raw :
         {std::string(" TEXT"), std::string(" INT"), std::string(" UINT"), std::string(" FLOAT"), SourceFolder()})
      EXPECT_THAT(help.out, Not(HasSubstr(raw))) << program;
  }
}

TEST_F(ExampleRun, TrainsByAnotherAlgorithmWhenAsked) {
  // Impossible in the memory of the ps, as Hogwild trains.
  Process run(Script("hogwild/run.sh", "--algorithm=dynsgd --window=2 --steps=10"), Options());
  EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
  EXPECT_EQ(After(run.out, "[worker:0] Test accuracy ").size(), 1) << run.out << run.err;
}

// Real processes that race for the ps, with windows, several ps, exchanges and a gate.
TEST_F(ExampleRun, DeterministicRunsAreTheSameToTheBit) {
  for (const char* script : {"downpour/run.sh", "dynsgd/run.sh", "aeasgd/run.sh", "synchronous_sgd/run.sh"}) {
    SCOPED_TRACE(script);
    const ScratchFolder models;
    const auto train = [&](const std::string& model, const std::string& seed) {
      const std::string flags =
          absl::StrCat("--deterministic --steps=14 --seed=", seed, " --model_dir=", models / model);
      Process run(Script(script, flags), Options());
      EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
    };
    train("one", "1");
    train("again", "1");
    train("other", "2");
    Process same({kMuster, "checkpoint", "diff", models / "one", models / "again"}, Options());
    EXPECT_EQ(same.Wait(), 0) << same.out << same.err;
    Process different({kMuster, "checkpoint", "diff", models / "one", models / "other"}, Options());
    EXPECT_EQ(different.Wait(), 1) << different.out << different.err;
  }
}

TEST_F(ExampleRun, RefusesWhatItDoesNotKnow) {
  ExpectUsageError(Script("downpour/run.sh", "--algorithm=dynsg"), {"dynsg", "dynsgd"});
  ExpectUsageError(Script("downpour/run.sh", "--window=0"), {"window"});
  ExpectUsageError(Script("downpour/run.sh", "--windw=3"), {"unknown argument \"--windw=3\" (nearest: --window)"});
  ExpectUsageError(Script("aeasgd/run.sh", "--alhpa 0.1"), {"unknown argument \"--alhpa\" (nearest: --alpha)"});
  ExpectUsageError(Script("agn/run.sh", "--step=9"), {"unknown argument \"--step=9\" (nearest: --steps)"});
  ExpectUsageError(Script("agn/run.sh", "--model-dri=x"), {"(nearest: --model_dir)"});
  ExpectUsageError(Script("non_distributed/run.sh", "--algorithm=dynsgd"), {"unknown argument \"--algorithm=dynsgd\""});
  ExpectUsageError(Script("agn/run.sh", "more"), {"unknown argument \"more\"; see --help"});
  ExpectUsageError(Script("agn/run.sh", "--steps=0"), {"--steps: '0': accepted is a whole number from 1"});
  ExpectUsageError(Script("ensemble/run.sh", "--algorithm=dynsgd"), {"--algorithm"});
  ExpectUsageError(Script("agn/run.sh", "--batch_size= --steps 2"), {"--batch_size has no value"});
  ExpectUsageError(Script("agn/run.sh", "--learning_rate="), {"--learning_rate has no value"});
}

TEST_F(ExampleRun, TheEnsembleSaysThatItWritesNoModel) {
  Process run(Script("ensemble/run.sh", "--steps=2 --model_dir=model"), Options());
  EXPECT_EQ(run.Wait(), 0) << run.out << run.err;
  EXPECT_THAT(run.err, HasSubstr("ensemble: nothing will be written to --model_dir model"));
}

TEST_F(ExampleRun, NamesItselfInWhatItSaysOfTheData) {
  ExpectUsageError(Script("hogwild/run.sh", "--data_dir=/nowhere"), {"hogwild: --data_dir: /nowhere/"});
}

TEST_F(ExampleRun, RefusesAClusterThatDoesNotFit) {
  ExpectUsageError({kMuster, "run", "--ps", "1", "--workers", "2", "--", BinFolder() + "/all_reduce"},
                   {"all_reduce", " ps"});
  ExpectUsageError({kMuster, "run", "--ps", "0", "--workers", "2", "--", BinFolder() + "/hogwild"}, {"hogwild", " ps"});
}

TEST(ExamplesList, HasEveryScript) {
  std::vector<std::string> listed, there;
  for (const Example& example : Examples()) listed.push_back(example.script);
  listed.emplace_back("experiment_iris/run.sh");  // experiment_iris_test
  for (const auto& file : std::filesystem::recursive_directory_iterator(kExamples))
    if (file.path().extension() == ".sh") there.push_back(file.path().lexically_relative(kExamples).string());
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(there));
}

}  // namespace
}  // namespace muster::examples_test
