// What isn't run every day with a real Ray: it starts nodes anew, writes much, or is about one detail.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/process/ray/ray_experiment.h"

namespace muster::ray_long_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not,
    ::testing::UnorderedElementsAre;

class RayLong : public RayExperiment {};

// The devices are shared out under the names that Ray's node has for them; without any, the task that wants one says
// so.
TEST_F(RayLong, GpusThatRayGivesAreThoseOfTheTasks) {
  WriteExperiment("torchrun: {workers: 2}\nresources: {gpus: 1}\nrun: echo $(hostname) has $CUDA_VISIBLE_DEVICES");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr("\"GPU\":2.0"));
  std::vector<std::string> seen;
  for (const char* task : {"1.worker.1", "1.worker.2"})
    for (const std::string& line : LinesOf(said.out, task))
      if (absl::StrContains(line, " has ")) seen.push_back(line);
  EXPECT_THAT(seen, UnorderedElementsAre("h3 has GPU-aaaa", "h3 has GPU-bbbb"));
  job_ = "nodes: 1, resources: {GPU: 0}";
  WriteExperiment("restart: {policy: never}\nresources: {gpus: 1}\nrun: echo never");
  const Said without = Muster({"train"});
  EXPECT_NE(without.exit_code, 0) << without.out;
  EXPECT_THAT(without.out,
              HasSubstr("the task wants a GPU that isn't there: the host's own CUDA_VISIBLE_DEVICES is ''"));
}

TEST_F(RayLong, KillAndRaysOwnStopEndIt) {
  WriteExperiment(absl::StrCat("run: '", UntilStop(), "'"));
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

TEST_F(RayLong, ATaskThatFailsIsShownInRaysLogWithItsLastLines) {
  WriteExperiment("restart: {policy: never}\nrun: 'for i in $(seq 70); do echo line $i; done; exit 3'");
  const auto train = StartMuster({"train"});
  EXPECT_EQ(train->Wait(), 3) << train->out << train->err;
  ray().AwaitNothingElseOn("h1");
  EXPECT_THAT(LogOfJob(train->err),
              AllOf(HasSubstr("1.master failed; its last 50 lines:\n"), HasSubstr("1.master | line 70\n"),
                    HasSubstr("1.master | line 21\n"), Not(HasSubstr("line 20\n"))));
}

// Ray itself takes 500 MB for a job's files.
TEST_F(RayLong, SixHundredMegabytesOfCodeGoToTheNodesThatDontSeeThem) {
  job_ = "nodes: 3";
  for (const char* host : {"h2", "h3"}) HideFrom(host);
  Write("data", "");
  std::filesystem::resize_file(project() + "/data", 600 << 20);
  WriteCluster("{worker: 3}", "wc -c <data");
  const Said said = Muster({"train", "--code_limit", "1GB"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"})
    EXPECT_THAT(LinesOf(said.out, task), Contains("629145600")) << said.out;
}

TEST_F(RayLong, TasksOfANodeThatDiesMove) {
  job_ = "nodes: 3";
  WriteCluster("{worker: 3}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  std::string on_h3;
  const nlohmann::json status = Json({"status", "1"});
  for (const nlohmann::json& task : status["tasks"])
    if (task["host"] == "h3") on_h3 = task["id"].get<std::string>();
  ASSERT_NE(on_h3, "");
  ray().KillRayletOn("h3");
  hosts().AwaitNothingOn("h3");
  AwaitLines(*train, on_h3, 4);
  EXPECT_THAT(LinesOf(train->out, on_h3), Contains(testing::AnyOf("begins on h1", "begins on h2")));
  EXPECT_THAT(train->out, HasSubstr("h3 waits for another node with {CPU: 0.01}; free now: h1 "));
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  ray().StartOn({"h3"});
}

// The monitor of h3 finds that more is used than it allows, whatever is used.
TEST_F(RayLong, RaysMemoryMonitorIsNamedWhenItKills) {
  ray().KillRayletOn("h3");
  ray().StartOn({"h3"}, {"RAY_memory_monitor_refresh_ms=100", "RAY_memory_usage_threshold=0.001"});
  job_ = "nodes: 3";
  WriteCluster("{worker: 3}", UntilStop());
  const Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0) << said.out;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("Ray's memory monitor has killed it: "), HasSubstr("low on memory")));
  ray().KillRayletOn("h3");
  ray().StartOn({"h3"});
}

// With its head all of Ray ends, and the experiment. The next head doesn't know its job, and runs its next attempt.
TEST_F(RayLong, AnotherHeadRunsTheNextAttempt) {
  job_ = "nodes: 2";
  WriteExperiment(
      "run: if [ -e $OUTPUT_DIR/saved ]; then echo resumed; else touch $OUTPUT_DIR/saved; echo begins; sleep 1000; fi");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begins");
  ray().KillRayletOn("h1");
  for (const char* host : {"h2", "h3"}) ray().KillOn(host);
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
  ray().StartOn(hosts().names());
  EXPECT_NE(train->Wait(), 0) << train->out;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job muster-1-[0-9a-f]+ of Ray has ended"));
  const Said again = Muster({"train", "--experiment", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_THAT(LinesOf(again.out, "1.master"), Contains("resumed"));
}

}  // namespace
}  // namespace muster::ray_long_test
