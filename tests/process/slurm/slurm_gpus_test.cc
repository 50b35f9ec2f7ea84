// However a job asks Slurm for GPUs, tasks have all that it has on their node: a step of a job by --gpus-per-task, for
// example, would have those of one task.
#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/slurm/slurm_experiments.h"

namespace muster::slurm_gpus_test {
namespace {

using ::testing::ElementsAre;

class SlurmGpus : public SlurmExperiment, public ::testing::WithParamInterface<const char*> {};

TEST_P(SlurmGpus, TasksOfARunHaveAllOfTheirNode) {
  std::vector<std::string> words = {"salloc", "--nodes=2", "--nodelist=h3,h4"};
  for (const absl::string_view option : absl::StrSplit(GetParam(), ", "))
    words.push_back(absl::StrCat("--", absl::StrReplaceAll(option, {{": ", "="}})));
  Process run(slurm().On("h0", Joined(words, {BinFolder() + "/muster", "run", "--on", "slurm", "--ps", "0", "--workers",
                                              "2", "--", "sh", "-c", "echo $(hostname) $CUDA_VISIBLE_DEVICES"})),
              Options());
  EXPECT_EQ(run.Wait(), 0) << run.err;
  EXPECT_THAT(After(run.out, "[worker:0] "), ElementsAre("h3 0,1")) << run.err;
  EXPECT_THAT(After(run.out, "[worker:1] "), ElementsAre("h4 0,1")) << run.err;
}

// The next agent's step is of one node.
TEST_P(SlurmGpus, TasksOfAnExperimentHaveAllOfTheirNodeAlsoAfterItsAgentsDeath) {
  job_ = absl::StrCat("nodes: 2, nodelist: \"h3,h4\", ", GetParam());
  WriteCluster("{worker: 2}",
               "echo $(hostname) $CUDA_VISIBLE_DEVICES; until [ -e $OUTPUT_DIR/stop ]; do sleep 0.1; done");
  const auto train = StartMuster({"train"});
  const auto seen_on = [&train](const char* task, const std::string& host) {
    std::vector<std::string> seen;
    for (const std::string& line : LinesOf(train->out, task))
      if (absl::StartsWith(line, host)) seen.push_back(line);
    return seen;
  };
  const auto await = [&](const char* task, const std::string& host, size_t count) {
    while (seen_on(task, host).size() < count && !HasFailure()) train->ReadSomeOut();
  };
  await("1.master", "h3", 1);
  await("1.worker.1", "h4", 1);
  AwaitStatus("1", "RUNNING");
  KillOn("h4", "");
  await("1.worker.1", "h4", 2);
  std::ofstream(home() + "/experiments/1/output/stop") << "";
  EXPECT_EQ(train->Wait(), 0) << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(seen_on("1.master", "h3"), ElementsAre("h3 0,1"));
  EXPECT_THAT(seen_on("1.worker.1", "h4"), ElementsAre("h4 0,1", "h4 0,1"));
}

INSTANTIATE_TEST_SUITE_P(, SlurmGpus, ::testing::Values("ntasks: 4, gpus-per-task: 1", "gpus: 4", "gpus-per-node: 2"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return absl::StrContains(name, "task")   ? "PerTask"
                                  : absl::StrContains(name, "node") ? "PerNode"
                                                                    : "OfTheJob";
                         });

}  // namespace
}  // namespace muster::slurm_gpus_test
