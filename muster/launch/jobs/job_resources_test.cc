#include "muster/launch/jobs/job_resources.h"

#include <gmock/gmock.h>

namespace muster::job_resources_test {
namespace {

ExperimentFile File(const std::string& train) {
  return ParseExperimentFile("project: p\ntrain:\n" + train, "muster.yml").value();
}

HostNeeds Needs(const std::string& train, int hosts, const SubmitOptions& options = {}) {
  return NeedsOfHosts(File(train), options, hosts).value();
}

TEST(NeedsOfHostsTest, WhatNoTaskStatesIsUnset) { EXPECT_EQ(Needs("  run: x\n", 2), HostNeeds()); }

TEST(NeedsOfHostsTest, TheFullestHostCounts) {
  const std::string file =
      "  framework: muster\n  resources: {cpus: 1.5, mem: 1GB}\n"
      "  muster: {distributed: {ps: 1, worker: 3}}\n  run: x\n";
  // One host has all: a master, two workers and a ps.
  EXPECT_EQ(Needs(file, 1), (HostNeeds{.cpus = 6, .mem_bytes = int64_t{4} << 30}));
  // The first of two has three of them.
  EXPECT_EQ(Needs(file, 2).cpus, 4.5);
}

TEST(NeedsOfHostsTest, GpusAreThoseOfAHost) {
  const std::string file = "  framework: any\n  resources: {gpus: 2}\n  run: x\n";
  EXPECT_EQ(Needs(file, 1), HostNeeds{.gpus = 2});
  EXPECT_EQ(Needs(file, 1, {.no_gpus = true}), HostNeeds());
}

int Least(const std::string& train, int hosts, const SubmitOptions& options = {}) {
  return LeastHosts(File(train), options, hosts).value();
}

// A master, a worker and an evaluator.
std::string WithEvaluator(const std::string& more = "", const std::string& more_tasks = "") {
  return "  framework: tensorflow\n  tensorflow: {distributed: {master: 1, worker: 1, evaluator: true" + more_tasks +
         "}}\n" + more + "  run: x\n";
}

TEST(LeastHostsTest, AHostThatHasTheEvaluatorAloneMayBeMissing) {
  EXPECT_EQ(Least(WithEvaluator(), 3), 2);
  EXPECT_EQ(Least(WithEvaluator(), 2), 2) << "the evaluator is beside the master";
  EXPECT_EQ(Least(WithEvaluator(), 1), 1);
  EXPECT_EQ(Least(WithEvaluator(), 5), 4) << "it is on the third of five";
  EXPECT_EQ(Least("  framework: tensorflow\n  tensorflow: {distributed: {worker: 2}}\n  run: x\n", 3), 3);
}

TEST(LeastHostsTest, AllAreNeededWhereTheUserHasPlacedTasks) {
  SubmitOptions options;
  options.hosts.placement = {{"master", {"h1"}}};
  EXPECT_EQ(Least(WithEvaluator(), 3, options), 3);
}

TEST(LeastHostsTest, AllAreNeededWhereNoOtherHostHasRoomForTheEvaluator) {
  EXPECT_EQ(Least(WithEvaluator("  resources: {gpus: 1}\n"), 3), 3);
  EXPECT_EQ(Least(WithEvaluator("  resources: {gpus: 1}\n"), 3, {.no_gpus = true}), 2);
  EXPECT_EQ(Least(WithEvaluator("  resources: {mem: 1GB}\n"), 3), 3);
  EXPECT_EQ(Least(WithEvaluator("  resources: {mem: 1GB}\n", ", ps: 1"), 3), 2)
      << "beside the worker it needs no more than master and ps";
  EXPECT_EQ(Least(WithEvaluator("  resources: {cpus: 2}\n"), 3), 2) << "it has fewer processors";
}

TEST(HostsWithoutTaskTest, AreThoseBeyondTheTasks) {
  const ExperimentFile file = File("  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n  run: x\n");
  // The ps is beside one of the others.
  EXPECT_EQ(HostsWithoutTask(file, 2).value(), 0);
  EXPECT_EQ(HostsWithoutTask(file, 6).value(), 4);
}

TEST(NoticeBeforeEndTest, IsWhatTasksMayTakeOrHaveTaken) {
  const SubmitOptions options{.stop_grace_seconds = 100};
  EXPECT_EQ(NoticeBeforeEnd(options, {}, 0), absl::Seconds(130));
  EXPECT_EQ(NoticeBeforeEnd(options, {}, 5), absl::Seconds(40));
  EXPECT_EQ(NoticeBeforeEnd(options, {}, 500), absl::Seconds(130));
  EXPECT_EQ(NoticeBeforeEnd(options, {.time_limit = absl::Minutes(3)}, 0), absl::Seconds(60)) << "a third of its time";
}

}  // namespace
}  // namespace muster::job_resources_test
