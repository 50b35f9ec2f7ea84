// `framework: muster`: one of this project's own programs as an experiment, with the stand-alone ps, watched while it
// trains here, and resumed from its checkpoint.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_muster_test {
namespace {

using nlohmann::json;
using ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::StartsWith;

class ExperimentMuster : public OnEveryEngine {
 protected:
  void WriteTraining() {
    const std::string output = OutputThatStays();
    Write("muster.yml",
          absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n",
                       output.empty() ? "" : "  ", output, "  parameters: {steps: 100}\n  run: >-\n    '", BinFolder(),
                       "/train_and_evaluate' --csv='", SourceFolder(),
                       "/examples/data/digits.csv' --steps={{ steps }} --save_steps=50 --model_dir=$OUTPUT_DIR\n"));
  }
};

class ExperimentMusterWatched : public ExperimentMuster {};

INSTANTIATE_TEST_SUITE_P(, ExperimentMuster, EveryEngine(), EngineName);
INSTANTIATE_TEST_SUITE_P(, ExperimentMusterWatched, EnginesWith(NotOnEngine::kStepsInMonitor), EngineName);

// Returns the last whole table that `monitor --json` has printed, by task; unknown values are null.
std::map<std::string, json> LastTable(const std::string& out) {
  std::map<std::string, json> by_id;
  const size_t end = out.rfind('\n');
  if (end == std::string::npos) return by_id;
  const size_t before = end == 0 ? std::string::npos : out.rfind('\n', end - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const json table = json::parse(out.substr(begin, end - begin));
  for (const json& task : table["tasks"]) by_id[task["id"].get<std::string>()] = task;
  return by_id;
}

TEST_P(ExperimentMuster, AnExampleTrainsAndGoesOnFromItsCheckpoint) {
  WriteTraining();
  const std::string shown = Out({"train"});
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains(StartsWith("Test accuracy ")));
  EXPECT_THAT(LinesOf(shown, "1.ps.1"), Contains(HasSubstr("serves at"))) << "the stand-alone ps, not the program";
  for (const std::string task : {"1.master", "1.worker.1", "1.ps.1"})
    EXPECT_EQ(StatesOf(shown, task).back(), "FINISHED") << task;
  EXPECT_EQ(StateOf("1"), "FINISHED");
  const std::string again = Out({"train", "--experiment", "1", "--param", "steps=150"});
  EXPECT_THAT(LinesOf(again, "1.master"), Contains(ContainsRegex("Restoring parameters from .*/model.ckpt-10")));
  EXPECT_EQ(Json({"status", "1"})["attempt"], 2);
}

TEST_P(ExperimentMusterWatched, MonitorShowsStepsLossAndStaleness) {
  WriteTraining();
  const auto train = StartMuster({"train", "--param", "steps=1000000000"});
  train->WaitForOut("Saving checkpoints for ");
  const auto monitor = StartMuster({"monitor", "1", "--interval", "0.1", "--json"});
  for (bool all = false; !all && !testing::Test::HasFailure();) {
    monitor->ReadSomeOut();
    std::map<std::string, json> tasks = LastTable(monitor->out);
    all = tasks.contains("1.master") && tasks.contains("1.worker.1");
    for (const std::string task : {"1.master", "1.worker.1"})
      all = all && tasks[task]["steps_per_second"].is_number() && tasks[task]["loss"].is_number() &&
            tasks[task]["staleness"].is_number() && tasks[task]["global_step"].is_number_integer() &&
            tasks[task]["global_step"].get<int64_t>() > 100;
  }
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(monitor->Wait(), 0) << monitor->err;
  EXPECT_EQ(train->Wait(), 130) << train->err;
}

}  // namespace
}  // namespace muster::experiment_muster_test
