#include "apps/muster/experiment/plan_text.h"

#include <gmock/gmock.h>

#include "muster/launch/testing/tensorflow_file.h"

namespace muster::plan_text_test {
namespace {

using ::testing::HasSubstr, ::testing::StartsWith;

constexpr char kCommand[] = "    python learn.py --depth 4 --step-size 0.1 --data /data/kettles\n";

ExperimentFile FileOf(const std::string& text) { return ParseExperimentFile(text, "riseml.yml").value(); }

TEST(PlanTextTest, ATensorflowFileAsItsAuthorMeantIt) {
  const std::string plan = PlanText(FileOf(kTensorflowFile), {{{"depth", "4"}, {"step-size", "0.1"}}}, {}).value();
  EXPECT_THAT(plan, StartsWith("riseml.yml: project tea-timer, framework tensorflow 1.4.0-gpu\n5 tasks\nparameters:\n"
                               "  depth: 4\n  step-size: 0.1\ntasks, with their commands:\n"));
  EXPECT_THAT(plan, HasSubstr(std::string("  ps.1, ps.2: 2 cpus, 8.0 GB of memory\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr(std::string("  master: 2 cpus, 8.0 GB of memory, 2 GPUs\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr(std::string("  worker.1, worker.2: 2 cpus, 8.0 GB of memory, 2 GPUs\n") + kCommand));
  EXPECT_THAT(plan, HasSubstr("variables of the tasks: DEPTH, EXPERIMENT_ID, JOB_NAME, MUSTER_"));
  EXPECT_THAT(plan, HasSubstr(", TF_CONFIG\n"));
}

TEST(PlanTextTest, WithoutValuesTheCommandIsThatOfTheFile) {
  EXPECT_THAT(PlanText(FileOf(kTensorflowFile), {{}}, {.no_gpus = true}).value(),
              HasSubstr("  master: 2 cpus, 8.0 GB of memory\n    python learn.py --depth {{ depth }} "
                        "--step-size {{ step-size }} --data /data/kettles\n"));
}

TEST(PlanTextTest, AGridAndItsFirstRun) {
  const std::string plan =
      PlanText(FileOf("project: p\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 5}}\n"
                      "  install: make\n  concurrency: 2\n  run: [prepare, 'x {{ lr }}']\n"),
               {{{"lr", "1"}}, {{"lr", "2"}}}, {})
          .value();
  EXPECT_EQ(plan.substr(0, plan.find("variables of")),
            "riseml.yml: project p, framework muster\ngrid: 2 runs, 2 at a time, each of 6 tasks\nparameters:\n"
            "  lr: 1, 2\ninstall, once before the tasks:\n    make\ntasks, with their commands in the first run:\n"
            "  ps.1: no limits\n    muster ps\n  master: no limits\n    prepare\n    x 1\n"
            "  worker.1 to worker.4: no limits\n    prepare\n    x 1\n");
}

}  // namespace
}  // namespace muster::plan_text_test
