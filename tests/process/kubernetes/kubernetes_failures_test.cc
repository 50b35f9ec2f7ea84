// What fails below `muster train --on kubernetes`: agents, pods and the API server, with the real kubectl and a
// stand-in for a cluster. KubernetesLong isn't run every day: a pod that is lost is replaced only after the grace of 10
// s.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/kubernetes/kubernetes_experiment.h"
#include "tests/process/testing/by_hand.h"

namespace muster::kubernetes_failures_test {
namespace {

using ::testing::Contains, ::testing::ContainsRegex, ::testing::Each, ::testing::HasSubstr, ::testing::Not,
    ::testing::SizeIs;

// A line of shell that kills each process whose words, with spaces between them, match a regular expression, and says
// so for each. An expression like "serve[ ]" doesn't match the shell that runs this line.
std::string KillLine(const std::string& pattern) {
  return absl::StrCat("for p in /proc/[0-9]*; do { tr '\\0' ' ' <$p/cmdline | grep -q '", pattern,
                      "' && kill -9 ${p#/proc/} && echo killed; } 2>/dev/null; done; true");
}

constexpr char kAgent[] = "agent --serve[ ]";
constexpr char kAgentsGuard[] = "run-guard agen[t]";

// Returns which task of experiment 1 a host has, and fails the test if it has none.
std::string TaskOn(const nlohmann::json& status, const std::string& host) {
  for (const nlohmann::json& task : status["tasks"])
    if (task["host"] == host) return task["id"].get<std::string>();
  ADD_FAILURE() << "no task is on " << host << ": " << status.dump();
  return "";
}

TEST_F(KubernetesExperiment, AnAgentThatIsKilledHasASuccessorInItsPod) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  EXPECT_EQ(InPod("-h1", KillLine(kAgent)), "killed\n");
  train->WaitForOut("the agent on h1 was killed; another goes on with its 1 task");
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(train->out, task), SizeIs(3)) << train->out;  // none was started again
}

// The tasks end meanwhile, and what they have written comes once the API server is there again.
TEST_F(KubernetesExperiment, AnExperimentGoesOnWithoutTheApiServerAndItsLogsCome) {
  WriteCluster("{worker: 2}", absl::StrCat(UntilStop(), "; echo ends; : >/gate/", Gate(), ".$(hostname)"));
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  cluster().KillApi();
  LetEnd();
  for (const char* host : {"h0", "h1"}) {
    Process ended(
        {"/bin/sh", "-c", "until [ -e \"$0\" ]; do sleep 0.1; done", InClaim(absl::StrCat(Gate(), ".", host))});
    EXPECT_EQ(ended.Wait(), 0) << host;
  }
  cluster().StartApi();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(StateOf("1"), "FINISHED");
  for (const char* task : {"1.master", "1.worker.1"}) {
    EXPECT_THAT(LinesOf(train->out, task), Contains("ends")) << train->out;
    EXPECT_THAT(LinesOf(Out({"logs", "1"}), task), Contains("ends"));
  }
}

class KubernetesLong : public KubernetesExperiment {
 protected:
  std::string MoreOfFile() const override { return KubernetesExperiment::MoreOfFile() + more_; }
  // Starts two tasks, one in each pod, which run `script` until LetEnd, and waits until they do.
  void TrainTwo(const std::string& script, const std::vector<std::string>& flags = {}) {
    WriteCluster("{worker: 2}", script);
    train_ = StartMuster(Joined({"train"}, flags));
    for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train_, task, 2);
    AwaitStatus("1", "RUNNING");
    on_h1_ = TaskOn(Json({"status", "1"}), "h1");
  }
  // Waits until the task of pod h1 has begun in h0, once.
  void AwaitMove() {
    AwaitLines(*train_, on_h1_, 4);
    const std::vector<std::string> lines = LinesOf(train_->out, on_h1_);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "begins on h1"), 1) << train_->out;
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "begins on h0"), 1) << train_->out;
  }
  // Lets both end, and expects that nothing was started again since.
  void ExpectGoodEnd() {
    LetEnd();
    EXPECT_EQ(train_->Wait(), 0) << train_->out << train_->err << Read("experiments/1/job.out");
    EXPECT_EQ(StateOf("1"), "FINISHED");
    EXPECT_THAT(StatesOf(train_->out, "1.master"), Each(Not("FAILED"))) << train_->out;
    EXPECT_THAT(StatesOf(train_->out, "1.worker.1"), Each(Not("FAILED"))) << train_->out;
    EXPECT_THAT(LinesOf(train_->out, on_h1_), SizeIs(5)) << train_->out;
  }

  std::string more_;  // lines of the file
  std::unique_ptr<Process> train_;
  std::string on_h1_;  // the task that was there at first
};

// With the guard the kernel ends the tasks, and then the pod ends.
TEST_F(KubernetesLong, TasksOfAnAgentThatIsKilledWithItsGuardMove) {
  TrainTwo(UntilStop());
  const std::string killed = InPod("-h1", absl::StrCat(KillLine(kAgentsGuard), "; ", KillLine(kAgent)));
  EXPECT_THAT(killed, HasSubstr("killed\n"));
  AwaitMove();
  ExpectGoodEnd();
}

TEST_F(KubernetesLong, APodThatIsOutOfMemoryIsNamedAndItsTaskStartedAgainOnce) {
  TrainTwo(UntilStop());
  Strike("oom", "-h1");
  AwaitStatus("1", "h1: OOMKilled: it used more than the memory of its pod; state more mem for the tasks");
  AwaitMove();
  ExpectGoodEnd();
}

// The shell gets the signal that the pod's first process gets, and has time to save.
TEST_F(KubernetesLong, ATaskOfADrainedPodIsAskedToEndAndMoves) {
  TrainTwo(absl::StrCat("trap \"sleep 1; echo saved by $(hostname) >>/gate/", Gate(), ".saved; exit 5\" TERM; ",
                        UntilStop()),
           {"--stop-grace", "1"});  // a pod's grace is as short as it may be
  cluster().Script("pods/evict", nlohmann::json{{"pod", JobOf("1") + "-h1"}, {"grace", 20}}.dump());
  AwaitMove();
  std::ifstream saved(InClaim(Gate() + ".saved"));
  std::string line;
  EXPECT_TRUE(std::getline(saved, line));
  EXPECT_EQ(line, "saved by h1");
  ExpectGoodEnd();
}

// Nothing but the evaluator is to be in the pod that no node has room for.
TEST_F(KubernetesLong, NobodyWaitsForThePodOfAnEvaluator) {
  SetFaults(R"({"unschedulable": {"*-h1": "0/2 nodes are available: 2 Insufficient cpu."}})");
  more_ = "placement: {master: h0, worker: h0, evaluator: h1}\n";
  WriteCluster(
      "{master: 1, worker: 1, evaluator: true}",
      absl::StrCat(
          "case $TF_CONFIG in *\\\"type\\\":\\\"evaluator\\\"*) echo evaluates on $(hostname);; *) echo trained;; "
          "esac; ",
          UntilStop()));
  const auto train = StartMuster({"train"});
  AwaitStatus("1", "RUNNING");
  AwaitStatus(
      "1",
      "2 of 3 pods run; h1: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.; the tasks run without that");
  EXPECT_THAT(Muster({"status", "1"}).out, HasSubstr(": RUNNING, "));
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(train->out, ContainsRegex("h1 isn't used: [^\n]*; evaluator runs on h0 instead\n"));
  EXPECT_THAT(LinesOf(train->out, "1.evaluator"), Contains("evaluates on h0"));
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("trained"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

}  // namespace
}  // namespace muster::kubernetes_failures_test
