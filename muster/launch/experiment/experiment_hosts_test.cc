#include "muster/launch/experiment/experiment_hosts.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::experiment_hosts_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair,
    ::testing::UnorderedElementsAre;

ExperimentFile FileOf(const std::string& train) {
  return ParseExperimentFile("project: p\ntrain:\n  run: x\n" + train, "muster.yml").value();
}

SubmitOptions On(std::vector<Host> hosts) { return {.hosts = {.hosts = std::move(hosts)}}; }

std::string WhyNot(const ExperimentFile& file, const SubmitOptions& options) {
  return std::string(PlanHosts(file, options).status().message());
}

TEST(PlanHostsTest, WithoutHostsItIsThisMachine) {
  EXPECT_TRUE(PlanHosts(FileOf(""), {})->hosts.empty());
  EXPECT_TRUE(PlanHosts(FileOf(""), {})->placement.empty());
}

TEST(PlanHostsTest, EveryTaskHasAHost) {
  const ExperimentFile file =
      FileOf("  framework: muster\n  muster: {distributed: {worker: 3, ps: 1, evaluator: true}}\n");
  SubmitOptions options = On({{.name = "a", .slots = 2}, {.name = "b"}});
  options.hosts.placement = {{"evaluator", {"a"}}};
  options.hosts.grace = absl::Seconds(40);
  options.hosts.ssh_config = "/config";
  const HostPlan plan = PlanHosts(file, options).value();
  EXPECT_THAT(plan.placement, UnorderedElementsAre(Pair(TaskId{"ps", 0}, "a"), Pair(TaskId{"master", 0}, "a"),
                                                   Pair(TaskId{"worker", 0}, "b"), Pair(TaskId{"worker", 1}, "a"),
                                                   Pair(TaskId{"evaluator", 0}, "a")));
  EXPECT_EQ(plan.grace, absl::Seconds(40));
  EXPECT_EQ(plan.ssh_config, "/config");
  EXPECT_FALSE(plan.muster.empty());
}

TEST(PlanHostsTest, AHostWithTheEvaluatorAloneIsOptional) {
  const ExperimentFile file = FileOf("  framework: muster\n  muster: {distributed: {worker: 2, evaluator: true}}\n");
  SubmitOptions options = On({{.name = "a"}, {.name = "b"}, {.name = "c"}});
  EXPECT_THAT(PlanHosts(file, options)->optional_hosts, ElementsAre("c"));
  options.hosts.placement = {{"evaluator", {"b"}}};
  EXPECT_THAT(PlanHosts(file, options)->optional_hosts, IsEmpty()) << "b has a worker, and c no task";
}

TEST(PlanHostsTest, TheRunsOfAGridBeginOnOneHostAfterTheOther) {
  const ExperimentFile file = FileOf("");
  const SubmitOptions options = On({{.name = "a"}, {.name = "b"}});
  std::vector<std::string> hosts;
  for (const int run : {1, 2, 3}) hosts.push_back(PlanHosts(file, options, run)->placement.begin()->second);
  EXPECT_THAT(hosts, ElementsAre("a", "b", "a"));
}

TEST(PlanHostsTest, TheHostThatShallBeTheFirstIsIfItIsThere) {
  const ExperimentFile file = FileOf("  framework: muster\n  muster: {distributed: {worker: 3}}\n");
  const SubmitOptions options = On({{.name = "a"}, {.name = "b"}, {.name = "c"}});
  const auto places = [&](int run, const std::string& first) {
    std::vector<std::string> hosts;
    for (const TaskId& task : {TaskId{"master", 0}, TaskId{"worker", 0}, TaskId{"worker", 1}})
      hosts.push_back(PlanHosts(file, options, run, first)->placement.at(task));
    return hosts;
  };
  for (const int run : {0, 1, 2, 3}) EXPECT_THAT(places(run, "b"), ElementsAre("b", "c", "a")) << run;
  EXPECT_THAT(places(0, "d"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(places(2, "d"), ElementsAre("b", "c", "a"));
}

using HostBeforeTest = RegistryFixture;

// An attempt that ended before its tasks ran says nothing of hosts.
TEST_F(HostBeforeTest, TheHostOfATaskIsThatOfTheLastAttemptInWhichItRan) {
  auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  const TaskId worker{kWorkerJob, 0};
  EXPECT_EQ(HostBefore(home_, id, 1, worker), "");
  for (const char* host : {"h1", "h2", ""}) {
    const bool runs = host[0] != '\0';
    Bring(*registry, id, runs ? RunState::kRunning : RunState::kPending);
    const RunState state = runs ? RunState::kRunning : RunState::kPending;
    ASSERT_TRUE(SetTasks(*registry, id, {{.task = worker, .state = state, .host = runs ? host : "h9"}}).ok());
    Bring(*registry, id, RunState::kFailed);
    ASSERT_TRUE(registry->Restart(id, Single()).ok());
    EXPECT_EQ(HostBefore(home_, id, Get(*registry, id).attempt, worker), runs ? host : "h2");
  }
  EXPECT_EQ(HostBefore(home_, id, 9, {kWorkerJob, 1}), "");
}

// What was written where this attempt wouldn't see it: it would begin anew without a word.
TEST(CheckOutputIsHereTest, WhatNeverCameIsNamedWithItsPlace) {
  const ScratchFolder folder;
  EXPECT_EQ(CheckOutputIsHere(folder / "elsewhere"), absl::OkStatus());
  folder.Write("elsewhere", "on h3 in /data/.muster/output/x/4");
  const absl::Status refused = CheckOutputIsHere(folder / "elsewhere");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("it is on h3 in /data/.muster/output/x/4. Accepted:"),
                                                    HasSubstr("without " + folder.path() + "/elsewhere")));
}

TEST(OutputPlacesTest, NamesTheHostsThatDontSeeOutputDirTheChiefsFirst) {
  std::map<std::string, PlacedCode> placed = {
      {"h1", {.output = "/a"}}, {"h2", {.output = "/a"}}, {"h3", {}}, {"h4", {.output = "/b"}}};
  EXPECT_EQ(OutputPlaces(placed, "h2"), "on h2, h1 in /a, on h4 in /b");
  EXPECT_EQ(OutputPlaces(placed, "h3"), "");
}

// They are what torchrun starts on one node, and share its GPUs.
TEST(PlanHostsTest, TheProcessesOfATorchrunWorkerShareAHost) {
  const ExperimentFile file = FileOf("  torchrun: {workers: 2, processes: 2, resources: {gpus: 1}}\n");
  const HostPlan plan =
      PlanHosts(file, On({{.name = "a", .slots = 1, .gpus = 1}, {.name = "b", .slots = 1, .gpus = 1}})).value();
  EXPECT_THAT(plan.placement, UnorderedElementsAre(Pair(TaskId{"worker", 0}, "a"), Pair(TaskId{"worker", 1}, "a"),
                                                   Pair(TaskId{"worker", 2}, "b"), Pair(TaskId{"worker", 3}, "b")));
}

TEST(PlanHostsTest, WhatHostsDontDoIsSaidWithTheWayOut) {
  const ExperimentFile version = FileOf("  framework: pytorch\n  pytorch: {version: 2.1.0}\n");
  EXPECT_THAT(WhyNot(version, On({{.name = "a"}})),
              HasSubstr("muster.yml:5: train.pytorch.version: a virtual environment is made on this machine, and hosts "
                        "don't have it; accepted on hosts: --no-venv"));
  SubmitOptions no_venv = On({{.name = "a"}});
  no_venv.no_venv = true;
  EXPECT_TRUE(PlanHosts(version, no_venv).ok());
  const ExperimentFile grid = FileOf("  concurrency: 2\n  resources: {gpus: 1}\n");
  EXPECT_THAT(WhyNot(grid, On({{.name = "a"}})), HasSubstr("muster.yml: train.concurrency: "));
  EXPECT_THAT(WhyNot(FileOf("  resources: {gpus: 2}\n"), On({{.name = "a", .gpus = 1}})),
              HasSubstr("no host has room for master:0, which needs 2 GPUs"));
}

TEST(HostedNameTest, IsThatOfTheHomeAndTheExperiment) {
  RunRecord run;
  run.id = {.number = 4, .run = 2};
  const std::string one = HostedName(Home("/one"), run);
  EXPECT_EQ(one.substr(one.find('/')), "/4.2");
  run.attempt = 2;
  EXPECT_EQ(one, HostedName(Home("/one"), run));
  EXPECT_NE(one, HostedName(Home("/other"), run));
  run.created += absl::Seconds(1);
  EXPECT_NE(one, HostedName(Home("/one"), run)) << "a home that was made anew";
}

}  // namespace
}  // namespace muster::experiment_hosts_test
