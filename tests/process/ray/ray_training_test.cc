// Training over the nodes of a real Ray, and what is left of it when the cluster is gone.
#include <gmock/gmock.h>

#include "muster/base/testing/built_at.h"
#include "tests/process/ray/ray_experiment.h"

namespace muster::ray_training_test {
namespace {

using ::testing::HasSubstr;

// The last test: it ends the cluster.
TEST_F(RayExperiment, TrainsOverThreeNodesAndItsLogsOutliveTheCluster) {
  job_ = "nodes: 3";
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n"
                     "  run: ",
                     BinFolder(), "/digits --csv=", SourceFolder(),
                     "/examples/data/digits.csv --steps=60 --model_dir=$OUTPUT_DIR\n"));
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  EXPECT_EQ(StateOf("1"), "FINISHED");
  job_ = "nodes: 1";
  WriteExperiment("run: sleep 600");
  Out({"train", "--detach"});
  AwaitStatus("2", "RUNNING");
  for (const std::string& host : hosts().names()) ray().KillOn(host);
  EXPECT_EQ(KillOn("h1", "ray_driver.py"), 1);
  const std::string shown = Out({"logs", "1"});
  for (const char* task : {"1.master", "1.worker.1", "1.ps.1"}) EXPECT_GT(LinesOf(shown, task).size(), 1) << task;
  EXPECT_THAT(shown, HasSubstr("Saving checkpoints for 6"));
  EXPECT_THAT(Muster({"status", "1"}).out, HasSubstr("FINISHED"));
  // Nobody is left to end the other one.
  Said killed;
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1); killed.exit_code != 0 && absl::Now() < give_up;)
    killed = Muster({"kill", "2"});
  EXPECT_THAT(killed.err, HasSubstr("it is killed here alone, as its job can't be ended: no dashboard of Ray answers"));
  EXPECT_EQ(StateOf("2"), "KILLED");
}

}  // namespace
}  // namespace muster::ray_training_test
