// What isn't run every day with a real Ray: it starts nodes anew, writes much, or is about one detail.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/process/ray/ray_experiment.h"

namespace muster::ray_long_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr,
    ::testing::Not, ::testing::UnorderedElementsAre;

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
  EXPECT_THAT(LinesOf(train->out, on_h3), Contains(AnyOf("begins on h1", "begins on h2")));
  train->WaitForOut("h3 waits for another node with {CPU: 0.01}, as its own has died; free now: h1 ");
  EXPECT_THAT(Muster({"status", "1"}).out,
              ContainsRegex("\n" + on_h3 + " [^\n]*was restarted: h3 was lost; it runs on h[12] now\n"));
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  ray().StartOn({"h3"});
}

// What a task or the evaluator does until LetEnd.
std::string TrainsOrEvaluates(const std::string& until_stop) {
  return absl::StrCat("case $TF_CONFIG in *\\\"type\\\":\\\"evaluator\\\"*) echo evaluates on $(hostname);; ",
                      "*) echo trained;; esac; ", until_stop);
}

// Only h1 and h2 have so much.
TEST_F(RayLong, NobodyWaitsForTheNodeOfAnEvaluatorThatCanNeverBeHad) {
  job_ = "nodes: 3, resources: {CPU: 4}";
  WriteCluster("{master: 1, worker: 1, evaluator: true}", TrainsOrEvaluates(UntilStop()));
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.evaluator"}) AwaitLines(*train, task, 3);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(train->out,
              HasSubstr("begins with 2 of 3 nodes, as nobody waits for that of the evaluator: Ray can never "
                        "give 3 nodes with {CPU: 4} each: of its 3 nodes, 2 have as much"));
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("trained"));
  EXPECT_THAT(LinesOf(train->out, "1.evaluator"), Contains(AnyOf("evaluates on h1", "evaluates on h2")));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  // All tasks but an evaluator are needed.
  WriteCluster("{master: 1, worker: 2}", "true");
  EXPECT_EQ(Muster({"train"}).exit_code, 2);
  EXPECT_THAT(Json({"status", "2"})["reason"].get<std::string>(), HasSubstr("Ray can never give 3 nodes"));
}

// Has the processors of h3, the only node with GPUs, until the test lets it go.
constexpr char kTakesH3[] = R"(
import os, sys, time
import ray
from ray.util.placement_group import placement_group, remove_placement_group

ray.init(address=sys.argv[1], log_to_driver=False)
group = placement_group([{"CPU": 2, "GPU": 1}])
print("h3 is", "taken" if group.wait(60) else "free", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
remove_placement_group(group)
)";

TEST_F(RayLong, NobodyWaitsForTheNodeOfAnEvaluatorThatIsTaken) {
  const std::string free = Aside("free");
  Process other(
      hosts().On("h1", {RayCluster::python(), "-c", kTakesH3, SimulatedHosts::AddressOf("h1") + ":6379", free}));
  other.WaitForOut("h3 is taken");
  job_ = "nodes: 3, resources: {CPU: 2}";
  grace_ = "2m";  // a busy machine takes its time until there is another supervisor
  WriteCluster("{master: 1, worker: 1, evaluator: true}", TrainsOrEvaluates(UntilStop()));
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1", "1.evaluator"}) AwaitLines(*train, task, 3);
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("muster: waits for 3 nodes with {CPU: 2} each; free now: h1 "));
  EXPECT_THAT(train->out,
              HasSubstr("begins with 2 of 3 nodes, as nobody waits for that of the evaluator: there is no room "
                        "for all of them; free now: h1 4 of 4 CPU; h2 4 of 4 CPU; h3 0 of 2 CPU\n"));
  EXPECT_THAT(LinesOf(train->out, "1.evaluator"), Contains(AnyOf("evaluates on h1", "evaluates on h2")));
  // The next supervisor goes on with as many, also when there is a third one.
  std::ofstream(free) << "\n";
  EXPECT_EQ(other.Wait(), 0) << other.out << other.err;
  AwaitStatus("1", "RUNNING");
  AwaitHandover();
  EXPECT_EQ(KillOn("h1", " supervise 1"), 1);
  AwaitTakeOvers(1);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\nstart\n");
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

// What runs in the job is a program with a connection of its own, which runs the driver in a thread.
constexpr char kProgram[] = R"(
import os, sys, threading
import ray

sys.dont_write_bytecode = True
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)

@ray.remote
def computed():
    return 42

def run():
    with open(sys.argv[2], encoding="utf-8") as file:
        codes.append(ray_driver.Driver(driver_server.asked_of(file.read(), "RAY"), sys.argv[3], None).run())

before = ray.get(computed.remote())
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import driver_server
import ray_driver

codes = []
thread = threading.Thread(target=run)
thread.start()
thread.join()
print("before", before, "after", ray.get(computed.remote()), "codes", codes, flush=True)
sys.exit(codes[0])
)";

TEST_F(RayLong, AProgramThatUsesRayItselfRunsTheDriver) {
  // Ray's own jobs have it in the place of the driver; for anything else it is the python that it is.
  const std::string program = Aside("program.py");
  std::ofstream(program) << kProgram;
  python_ = absl::StrCat(
      WriteProgram("python", absl::StrCat("case $1 in */ray_driver.py) exec ", RayCluster::python(), " ", program,
                                          " \"$@\";; esac\nexec ", RayCluster::python(), " \"$@\"")),
      "/python");
  job_ = "nodes: 2";
  WriteCluster("{worker: 2}", "echo trains on $(hostname)");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(said.out, task), Contains(HasSubstr("trains on h")));
  ray().AwaitNothingElseOn("h1");
  EXPECT_THAT(LogOfJob(said.err), HasSubstr("before 42 after 42 codes [0]\n"));
}

// Tells Ray what an autoscaler would: it may make two nodes with 64 processors.
constexpr char kTellGroups[] = R"(
import sys
import ray
from ray.core.generated import autoscaler_pb2
from ray._private.worker import global_worker

ray.init(address=sys.argv[1], log_to_driver=False)
group = autoscaler_pb2.NodeGroupConfig(name="large", resources={"CPU": 64}, max_count=2)
config = autoscaler_pb2.ClusterConfig(node_group_configs=[group])
global_worker.gcs_client.report_cluster_config(config.SerializeToString())
)";

TEST_F(RayLong, WhatAnAutoscalerMayMakeIsWaitedForAndSaid) {
  Process tell(hosts().On("h1", {RayCluster::python(), "-c", kTellGroups, SimulatedHosts::AddressOf("h1") + ":6379"}));
  EXPECT_EQ(tell.Wait(), 0) << tell.out << tell.err;
  WriteExperiment("resources: {cpus: 64}\nrun: 'true'");
  const auto train = StartMuster({"train"});
  AwaitStatus("1",
              "RUNNING (waits for a node with {CPU: 64}; free now: h1 4 of 4 CPU; h2 4 of 4 CPU; h3 2 of 2 CPU; its "
              "autoscaler may make up to 2 such nodes in all)");
  EXPECT_EQ(Muster({"kill", "1"}).exit_code, 0);
  EXPECT_EQ(train->Wait(), 130) << train->err;
  job_ = "nodes: 3";
  WriteExperiment("resources: {cpus: 64}\nrun: 'true'");
  EXPECT_EQ(Muster({"train"}).exit_code, 2);
  EXPECT_THAT(Json({"status", "2"})["reason"].get<std::string>(),
              HasSubstr("never give 3 nodes with {CPU: 64} each: of its 3 nodes and 2 that its autoscaler may make, 2 "
                        "have as much; the most that one has is {CPU: 64}"));
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

// The last test, as no other one has the token.
TEST_F(RayLong, AClusterThatWantsATokenTakesItsOwnAlone) {
  constexpr char kMode[] = "RAY_AUTH_MODE=token", kToken[] = "the-token-of-this-cluster";
  for (const std::string& host : hosts().names()) ray().KillOn(host);
  for (const std::string& host : hosts().names()) hosts().AwaitNothingOn(host);
  ray().StartOn({"h1"}, {kMode, absl::StrCat("RAY_AUTH_TOKEN=", kToken)});
  WriteExperiment("run: echo trains");
  const auto refused_with = [this](const std::vector<std::string>& variables) {
    environment_ = variables;
    const Said said = Muster({"train"});
    EXPECT_EQ(said.exit_code, 2) << said.out << said.err;
    EXPECT_THAT(Muster({"ls", "--all"}).out, Not(AnyOf(HasSubstr("FAILED"), HasSubstr("PENDING"))));
    return said.err;
  };
  EXPECT_THAT(refused_with({}),
              HasSubstr("Ray refuses it: status code 401: Unauthorized: Missing authentication token"));
  EXPECT_THAT(refused_with({kMode, "RAY_AUTH_TOKEN=", "RAY_AUTH_TOKEN_PATH=/nonexistent"}),
              HasSubstr("RAY_AUTH_MODE is token, and there is none: neither RAY_AUTH_TOKEN nor a file"));
  EXPECT_THAT(refused_with({kMode, "RAY_AUTH_TOKEN=another-one-than-that"}),
              HasSubstr("Ray refuses it: status code 403: Forbidden: Invalid authentication token"));
  environment_ = {kMode, absl::StrCat("RAY_AUTH_TOKEN=", kToken)};
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  EXPECT_THAT(said.out, HasSubstr("trains"));
  for (const std::string& name : EntriesOf(home() + "/experiments"))
    EXPECT_THAT(Read("experiments/" + name + "/job.sh"), Not(HasSubstr(kToken))) << name;
}

}  // namespace
}  // namespace muster::ray_long_test
