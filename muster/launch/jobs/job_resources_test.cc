#include "muster/launch/jobs/job_resources.h"

#include <gmock/gmock.h>

namespace muster::job_resources_test {
namespace {

ExperimentFile File(const std::string& train) {
  return ParseExperimentFile("project: p\ntrain:\n" + train, "muster.yml").value();
}

SbatchOptions Asked(const std::string& train, int nodes, const SubmitOptions& options = {}) {
  return ResourcesOfJob(File(train), options, nodes).value();
}

TEST(ResourcesOfJobTest, WhatNoTaskStatesIsntAskedFor) { EXPECT_EQ(Asked("  run: x\n", 2), SbatchOptions()); }

TEST(ResourcesOfJobTest, TheFullestNodeCounts) {
  const std::string file =
      "  framework: muster\n  resources: {cpus: 1.5, mem: 1GB}\n"
      "  muster: {distributed: {ps: 1, worker: 3}}\n  run: x\n";
  // One node has all: a master, two workers and a ps.
  EXPECT_EQ(Asked(file, 1), (SbatchOptions{{"ntasks-per-node", "1"}, {"cpus-per-task", "6"}, {"mem", "4160M"}}));
  // The first of two has three of them.
  EXPECT_EQ(Asked(file, 2).at("cpus-per-task"), "5");
}

TEST(ResourcesOfJobTest, GpusAreThoseOfANode) {
  const std::string file = "  framework: any\n  resources: {gpus: 2}\n  run: x\n";
  EXPECT_EQ(Asked(file, 1), (SbatchOptions{{"gres", "gpu:2"}}));
  EXPECT_EQ(Asked(file, 1, {.no_gpus = true}), SbatchOptions());
}

TEST(NodesAskedForTest, AreTheLeastOfARange) {
  const auto nodes = [](const std::string& text) {
    SlurmSetting setting;
    setting.options["nodes"] = text;
    return NodesAskedFor(setting);
  };
  EXPECT_EQ(NodesAskedFor({}), 1);
  EXPECT_EQ(nodes("3"), 3);
  EXPECT_EQ(nodes("2-4"), 2);
  EXPECT_EQ(nodes("many"), 1);
}

TEST(NoticeBeforeEndTest, IsWhatTasksMayTakeOrHaveTaken) {
  SubmitOptions options{.stop_grace_seconds = 100};
  EXPECT_EQ(NoticeBeforeEnd(options, 0), absl::Seconds(130));
  EXPECT_EQ(NoticeBeforeEnd(options, 5), absl::Seconds(40));
  EXPECT_EQ(NoticeBeforeEnd(options, 500), absl::Seconds(130));
  options.hosts.slurm.emplace();
  options.hosts.slurm->options["time"] = "3";
  EXPECT_EQ(NoticeBeforeEnd(options, 0), absl::Seconds(60)) << "a third of its time";
  options.hosts.slurm->options["time"] = "UNLIMITED";
  options.stop_grace_seconds = 1000000;
  EXPECT_EQ(NoticeBeforeEnd(options, 0), absl::Seconds(65535)) << "what sbatch takes";
}

}  // namespace
}  // namespace muster::job_resources_test
