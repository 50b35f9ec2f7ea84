// `muster train --on ray` with a real Ray.
#include "tests/process/ray/ray_experiment.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"

namespace muster::ray_experiment_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not,
    ::testing::UnorderedElementsAre;

// Begins, says so, and goes on until the test lets it end.
constexpr char kUntilStop[] =
    "echo start >>$OUTPUT_DIR/starts; echo begins on $(hostname); until [ -e $OUTPUT_DIR/stop ]; do sleep 0.1; done";

TEST_F(RayExperiment, TheTasksRunOnTheNodesWithTheCodeThatTheyDontSee) {
  job_ = "nodes: 3";
  Write("words.txt", "from the project\n");
  WriteCluster("{worker: 3}", "cat words.txt; echo on $(hostname)");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  std::vector<std::string> seen;
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"}) {
    EXPECT_THAT(LinesOf(said.out, task), Contains("from the project"));
    for (const std::string& line : LinesOf(said.out, task))
      if (absl::StartsWith(line, "on ")) seen.push_back(line);
  }
  EXPECT_THAT(seen, UnorderedElementsAre("on h1", "on h2", "on h3"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(said.err, ContainsRegex("experiment 1 is job muster-1-[0-9a-f]+ of Ray"));
  const std::string script = Read("experiments/1/job.sh");
  EXPECT_THAT(script, AllOf(HasSubstr("#RAY {"), HasSubstr("\"nodes\":3"), Not(HasSubstr("TOKEN"))));
  const std::vector<std::string> jobs = After(said.err, "experiment 1 is job ");
  ASSERT_EQ(jobs.size(), 1);
  ray().AwaitNothingElseOn("h1");
  const std::string log = ray().Ask({"job", "logs", jobs[0].substr(0, jobs[0].find(' '))});
  EXPECT_THAT(log, AllOf(HasSubstr("muster: experiment 1 has h"), HasSubstr("1.master --> FINISHED")));
}

TEST_F(RayExperiment, WhatNoNodeHasIsRefusedAtOnce) {
  job_ = "nodes: 2";
  WriteExperiment("resources: {cpus: 64}\nrun: 'true'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 2) << said.out << said.err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("Ray can never give 2 nodes with {CPU: 64} each: of its 3 nodes, 0 have as much"),
                    HasSubstr("the most that one has is {CPU: 4}")));
}

TEST_F(RayExperiment, WhatIsNotFreeNowIsWaitedForAndStatusSaysWhy) {
  job_ = "nodes: 2, resources: {CPU: 4}";
  WriteExperiment(absl::StrCat("run: '", kUntilStop, "'"));
  const auto first = StartMuster({"train"});
  first->WaitForOut("begins on ");
  const auto second = StartMuster({"train"});
  second->WaitForErr("experiment 2 waits: job ", 0);
  AwaitStatus("2",
              "RUNNING (waits for 2 nodes with {CPU: 4} each; free now: h1 0 of 4 CPU; h2 0 of 4 CPU; h3 2 of 2 CPU)");
  const auto third = StartMuster({"train"});
  AwaitStatus("3", "RUNNING (waits for 2 nodes");
  EXPECT_EQ(Muster({"kill", "3"}).exit_code, 0);
  EXPECT_EQ(third->Wait(), 130) << third->err;
  EXPECT_EQ(StateOf("3"), "KILLED");
  LetEnd("1");
  EXPECT_EQ(first->Wait(), 0) << first->err;
  second->WaitForOut("begins on ");
  EXPECT_THAT(Muster({"status", "2"}).out, Not(HasSubstr("waits")));
  LetEnd("2");
  EXPECT_EQ(second->Wait(), 0) << second->err;
}

// Each of them has somebody who starts it again; the tasks go on but where their agent's actor dies.
TEST_F(RayExperiment, WhatIsKilledIsReplaced) {
  job_ = "nodes: 2";
  WriteCluster("{worker: 2}", kUntilStop);
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  std::string host = Json({"status", "1"})["tasks"][1]["host"];
  EXPECT_EQ(KillOn(host, "agent --serve"), 1);
  EXPECT_EQ(KillOn("h1", " supervise 1"), 1);
  AwaitTakeOver();
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\n");
  EXPECT_EQ(KillOn(host, "ray::HostAgent"), 1);
  AwaitLines(*train, "1.worker.1", 4);
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\nstart\n");
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("the supervisor of experiment 1 was killed (signal 9)"));
}

TEST_F(RayExperiment, KillAndRaysOwnStopEndIt) {
  WriteExperiment(absl::StrCat("run: '", kUntilStop, "'"));
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins on ");
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, Not(HasSubstr("doesn't answer")));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(Json({"status", "1"})["reason"], "it was killed");

  const auto other = StartMuster({"train"});
  other->WaitForOut("begins on ");
  ray().Ask({"job", "stop", JobOf("2")});
  EXPECT_EQ(other->Wait(), 130) << other->err;
  EXPECT_EQ(StateOf("2"), "KILLED");
  EXPECT_THAT(Json({"status", "2"})["reason"].get<std::string>(), HasSubstr("was cancelled"));
}

TEST_F(RayExperiment, ADriverThatIsKilledLeavesNothing) {
  job_ = "nodes: 2";
  WriteCluster("{worker: 2}", kUntilStop);
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  EXPECT_EQ(KillOn("h1", "ray_driver.py"), 1);
  EXPECT_EQ(train->Wait(), 137) << train->err;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job muster-1-[0-9a-f]+ of Ray has ended: FAILED"));
}

TEST_F(RayExperiment, TasksOfANodeThatDiesMove) {
  job_ = "nodes: 3";
  WriteCluster("{worker: 3}", kUntilStop);
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  std::string on_h3;
  const nlohmann::json status = Json({"status", "1"});
  for (const nlohmann::json& task : status["tasks"])
    if (task["host"] == "h3") on_h3 = task["id"].get<std::string>();
  ASSERT_NE(on_h3, "");
  ray().KillOn("h3");
  AwaitLines(*train, on_h3, 4);
  EXPECT_THAT(LinesOf(train->out, on_h3), Contains(testing::AnyOf("begins on h1", "begins on h2")));
  EXPECT_THAT(train->out, HasSubstr("h3 waits for another node with {CPU: 0.01}; free now: h1 "));
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  ray().StartOn("h3");
}

TEST_F(RayExperiment, ATaskThatFailsIsShownInRaysLogWithItsLastLines) {
  WriteExperiment("restart: {policy: never}\nrun: 'for i in $(seq 70); do echo line $i; done; exit 3'");
  const auto train = StartMuster({"train"});
  EXPECT_EQ(train->Wait(), 3) << train->out << train->err;
  const std::vector<std::string> jobs = After(train->err, "experiment 1 is job ");
  ASSERT_EQ(jobs.size(), 1);
  ray().AwaitNothingElseOn("h1");
  const std::string log = ray().Ask({"job", "logs", jobs[0].substr(0, jobs[0].find(' '))});
  EXPECT_THAT(log, AllOf(HasSubstr("1.master failed; its last 50 lines:\n"), HasSubstr("1.master | line 70\n"),
                         HasSubstr("1.master | line 21\n"), Not(HasSubstr("line 20\n"))));
}

TEST_F(RayExperiment, WhatKeepsItFromRayIsSaidAndNothingIsLeft) {
  address_ = "http://10.77.0.11:8266";
  WriteExperiment("run: 'true'");
  Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0);
  EXPECT_THAT(said.err, HasSubstr("no dashboard of Ray answers at http://10.77.0.11:8266"));
  address_ = RayCluster::address();
  WriteExperiment("run: 'true'");
  said = Muster({"train", "--ray", "python=/usr/bin/python3"});
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_THAT(said.err, HasSubstr("/usr/bin/python3 has no Ray: pip install 'ray[default]' there"));
  EXPECT_THAT(Out({"train", "--dry-run"}), ContainsRegex("Ray says: version 2\\.[0-9.]+ answers at http://10.77.0.11"));
  EXPECT_THAT(Muster({"ls"}).out, Not(HasSubstr("PENDING")));
}

}  // namespace
}  // namespace muster::ray_experiment_test
