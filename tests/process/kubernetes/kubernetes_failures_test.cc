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
#include "absl/time/clock.h"
#include "absl/time/time.h"
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
// Leaves two processes to the pod's first one, and says how many that have ended nobody has waited for within 10 s.
constexpr char kLeaveTwoToTheFirst[] =
    "for n in 1 2; do (sh -c : &); done; for n in $(seq 100); do left=$(grep -l \"^State:.Z\" /proc/[0-9]*/status "
    "2>/dev/null | wc -l); [ $left -gt 0 ] || break; sleep 0.1; done; echo $left";

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
  EXPECT_EQ(InPod("-h1", kLeaveTwoToTheFirst), "0\n");
  EXPECT_EQ(InPod("-h1", KillLine(kAgent)), "killed\n");
  train->WaitForOut("the agent on h1 was killed; another goes on with its 1 task");
  EXPECT_EQ(InPod("-h1", kLeaveTwoToTheFirst), "0\n") << "the killed agent is waited for, too";
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  // The successor ends the child of a task that it hasn't started.
  EXPECT_THAT(train->out, HasSubstr("killed 2 processes that the tasks had left behind"));
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

// The memory of a pod is its tasks' together; the ps has what is stated for it, and knows it.
TEST_F(KubernetesExperiment, AModelThatItsPsMayNotHaveIsRefusedBeforeTraining) {
  pods_ = "nodes: 1";
  const Said said = TrainALargerModelThanItsPsMayHave();
  EXPECT_THAT(said.out,
              ContainsRegex("no memory for the model: [1-9][0-9]+ MiB are needed for variables, slots and undo "
                            "\\(its limit of 100 MiB leaves [1-9][0-9]* MiB\\)"));
  EXPECT_EQ(Json({"status", "1"})["exit_code"], said.exit_code);
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
  // Returns what a pod of experiment 1 is like: "Running", "Failed".
  std::string PhaseOf(const std::string& suffix) {
    return cluster().Ask({"get", "pod", JobOf("1") + suffix, "--output=jsonpath={.status.phase}"});
  }
  // Waits until a pod has ended, and returns how.
  std::string AwaitEndOf(const std::string& suffix) {
    std::string phase = "Running";
    for (const absl::Time give_up = absl::Now() + absl::Seconds(20); phase == "Running" && absl::Now() < give_up;)
      phase = PhaseOf(suffix);
    return phase;
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

// With the guard the kernel ends the tasks, and then the pod ends, whatever the tasks have started.
TEST_F(KubernetesLong, TasksOfAnAgentThatIsKilledWithItsGuardMove) {
  TrainTwo(UntilStop());
  // The end of the pod may end this command, too.
  const std::string kills = absl::StrCat(KillLine(kAgentsGuard), "; ", KillLine(kAgent));
  Process(cluster().OnH0({"kubectl", "exec", JobOf("1") + "-h1", "--", "sh", "-c", kills})).Wait();
  AwaitMove();
  EXPECT_EQ(AwaitEndOf("-h1"), "Failed");
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

// The chief may not leave h1.
constexpr char kChiefOnH1[] = "placement: {master: h1, worker: h0}\n";

// A new pod has the code that lies on a claim.
TEST_F(KubernetesLong, ALostPodIsMadeAgainWithAServiceAccountAndItsTaskGoesOnThere) {
  MakeTrainer();
  pods_ = absl::StrCat(
      "nodes: 2, service_account: trainer, pod_template: {spec: {volumes: [{name: code, persistentVolumeClaim: "
      "{claimName: gate}}], containers: [{name: muster, env: [{name: XDG_CACHE_HOME, value: /code/",
      Gate(), "-cache}], volumeMounts: [{name: code, mountPath: /code}]}]}}");
  more_ = kChiefOnH1;
  TrainTwo(UntilStop());
  ASSERT_EQ(on_h1_, "1.master");
  Strike("kill", "-h1");
  AwaitLines(*train_, on_h1_, 4);
  const std::vector<std::string> lines = LinesOf(train_->out, on_h1_);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "begins on h1"), 2) << train_->out;
  EXPECT_EQ(PhaseOf("-h1-1"), "Running");
  EXPECT_EQ(PhaseOf("-h1"), "Failed") << "it stays readable";
  ExpectGoodEnd();
}

TEST_F(KubernetesLong, WithoutAServiceAccountAChiefThatMayNotMoveEndsTheJobWithThatSentence) {
  more_ = kChiefOnH1;
  TrainTwo(UntilStop());
  ASSERT_EQ(on_h1_, "1.master");
  Strike("kill", "-h1");
  EXPECT_NE(train_->Wait(), 0) << train_->out << train_->err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              HasSubstr("h1: its pod is gone, and this job may not make it again: name a service_account that may "
                        "create pods (kubernetes: {service_account: …})"));
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
