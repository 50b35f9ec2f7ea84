// `muster train --on kubernetes` with the real kubectl and a stand-in for a cluster.
#include "tests/process/kubernetes/kubernetes_experiment.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/process/testing/by_hand.h"

namespace muster::kubernetes_experiment_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr,
    ::testing::Not;

// Not of every day: they wait until pods are gone.
class KubernetesWaitsLong : public KubernetesExperiment {};

TEST_F(KubernetesExperiment, TheTasksRunInPodsAndAllTheyWroteComesBack) {
  Write("words.txt", "from the project\n");
  WriteCluster("{worker: 2}", "cat words.txt; echo on $(hostname); echo $TASK_ID >$OUTPUT_DIR/$(hostname)");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  EXPECT_THAT(said.err, ContainsRegex("experiment 1 is job muster-1-[0-9a-f]{8} of Kubernetes"));
  std::vector<std::string> seen;
  for (const char* task : {"1.master", "1.worker.1"}) {
    const std::vector<std::string> lines = LinesOf(said.out, task);
    EXPECT_THAT(lines, Contains("from the project")) << said.out;
    EXPECT_THAT(lines, Contains(AnyOf("on h0", "on h1"))) << said.out;
  }
  EXPECT_THAT(said.out, AllOf(HasSubstr("on h0"), HasSubstr("on h1")));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(Read("experiments/1/job.sh"), AllOf(HasSubstr("kind: Pod"), Not(HasSubstr("MUSTER_RUN_TOKEN"))));
  // What the pods had is here, when there are none any more.
  AwaitNothingLeft();
  const std::string logs = Out({"logs", "1"});
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(logs, task), Contains("from the project"));
  for (const char* host : {"h0", "h1"})
    EXPECT_NE(Read(absl::StrCat("experiments/1/output/", host)), "") << said.out << Read("experiments/1/far.log");
}

TEST_F(KubernetesExperiment, WhatAPodWaitsForIsSaidAndKillTakesItAway) {
  SetFaults(R"({"unschedulable": {"*-h1": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}})");
  WriteCluster("{worker: 2}", "echo begins");
  const auto train = StartMuster({"train"});
  train->WaitForErr("experiment 1 waits: job ", 0);
  AwaitStatus("1", "2 of 3 pods run; h1: Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
  SetFaults(R"({"unschedulable": {}})");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;

  SetFaults(R"({"images": ["other:*"]})");
  const auto without_image = StartMuster({"train"});
  AwaitStatus("2", "Waiting alone doesn't change that");
  EXPECT_THAT(Muster({"status", "2"}).out, AnyOf(HasSubstr("ErrImagePull"), HasSubstr("ImagePullBackOff")));
  EXPECT_EQ(Muster({"kill", "2"}).exit_code, 0);
  EXPECT_EQ(without_image->Wait(), 130) << without_image->err;
  EXPECT_EQ(StateOf("2"), "KILLED");
}

TEST_F(KubernetesExperiment, AnImageWithoutMusterEndsItWithTheCodeOfItsPod) {
  WriteExperiment("run: 'true'");
  const Said said = Muster({"train", "--kubernetes", "muster=/opt/nowhere/muster"});
  EXPECT_EQ(said.exit_code, 127) << said.out << said.err;
  EXPECT_THAT(said.err, HasSubstr("exit code 127: the image has no muster in its PATH"));
  const Said logs = Muster({"logs", "1"});
  EXPECT_EQ(logs.out, "");
  EXPECT_THAT(logs.err, HasSubstr("no task of experiment 1 has run: it is FAILED: its job "));
  EXPECT_THAT(Out({"show", "1"}), Not(HasSubstr("the job's output"))) << "its pod had that";
}

TEST_F(KubernetesWaitsLong, TwoJobsAndAQuotaForOneAndAHalfBothEnd) {
  cluster().Apply(R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": )"
                  R"({"pods": "4"}}})");
  pods_ = "nodes: 2, start_pause: 1s";
  WriteCluster("{worker: 2}", UntilStop());
  const auto first = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*first, task, 2);
  const auto second = StartMuster({"train"});
  second->WaitForErr("experiment 2 waits: no job of Kubernetes now: the namespace's quota has no room for all pods", 0);
  AwaitTries("2", 2);
  // One that nobody watches waits, too, and a kill ends that at once.
  EXPECT_EQ(Muster({"train", "--detach"}).exit_code, 0);
  AwaitStatus("3", "no job of Kubernetes now");
  EXPECT_EQ(Muster({"kill", "3"}).exit_code, 0);
  EXPECT_EQ(StateOf("3"), "KILLED");
  LetEnd();
  EXPECT_EQ(first->Wait(), 0) << first->out << first->err << Read("experiments/1/job.out");
  EXPECT_EQ(second->Wait(), 0) << second->out << second->err << Read("experiments/2/far.log");
  EXPECT_EQ(StateOf("2"), "FINISHED");
  cluster().Ask({"delete", "resourcequota", "few"});
}

TEST_F(KubernetesWaitsLong, AJobOfWhichAPodDoesntStartIsGivenBackAndTriedAgain) {
  SetFaults(R"({"unschedulable": {"*-h1": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}})");
  pods_ = "nodes: 2, start_pause: 1s, start_timeout: 10s";
  WriteCluster("{worker: 2}", "echo begins");
  const auto train = StartMuster({"train"});
  train->WaitForErr("experiment 1 waits: job ", 0);
  AwaitTries("1", 1);
  SetFaults(R"({"unschedulable": {}})");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/far.log");
  for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("begins"));
}

// A registry may be wrong for a moment: the run fails once it has been so for 40 s.
TEST_F(KubernetesWaitsLong, AnImageThatIsNotThereEndsTheRunAndLeavesNothing) {
  SetFaults(R"({"images": ["other:*"]})");
  WriteCluster("{worker: 2}", "echo begins");
  const auto train = StartMuster({"train"});
  EXPECT_NE(train->Wait(), 0) << train->out << train->err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("its pods can't start, which waiting doesn't change"), HasSubstr("ErrImagePull"),
                    HasSubstr("and were given back")));
  EXPECT_THAT(train->out, Not(HasSubstr("begins")));
  AwaitNothingLeft();
}

// A gang that has room is started at once; kubernetes_gangs_test.cc has those that wait.
TEST_F(KubernetesExperiment, AGangsGroupIsMadeAndTakenAwayWithItsJob) {
  SetFaults(R"({"apis": ["volcano"]})");
  pods_ = "nodes: 2, gang: volcano";
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  const std::string job = JobOf("1"), groups = "podgroups.scheduling.volcano.sh";
  EXPECT_EQ(
      cluster().Ask({"get", groups, job, "--output=jsonpath={.spec.minMember} {.metadata.ownerReferences[0].name}"}),
      absl::StrCat("3 ", job));
  EXPECT_EQ(cluster().Ask({"get", "pod", job + "-h1",
                           "--output=jsonpath={.metadata.annotations.scheduling\\.k8s\\.io/group-name}"}),
            job);
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  AwaitNothingLeft();
  EXPECT_EQ(AwaitNone(groups), "");
}

TEST_F(KubernetesExperiment, KillEndsTheTasksAndAllPods) {
  WriteCluster("{worker: 2}", "trap \"echo ends gently; exit 5\" TERM; " + UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  const Said killed = Muster({"kill", "1"});
  EXPECT_EQ(killed.exit_code, 0) << killed.err;
  EXPECT_THAT(killed.err, Not(HasSubstr("doesn't answer")));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_EQ(Json({"status", "1"})["reason"], "it was killed");
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(train->out, task), Contains("ends gently")) << train->out;
}

TEST_F(KubernetesExperiment, TasksOfAnEvictedPodMove) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  std::string on_h1;
  const nlohmann::json status = Json({"status", "1"});
  for (const nlohmann::json& task : status["tasks"])
    if (task["host"] == "h1") on_h1 = task["id"].get<std::string>();
  ASSERT_NE(on_h1, "") << status.dump();
  Strike("evict", "-h1");
  AwaitLines(*train, on_h1, 4);
  EXPECT_THAT(LinesOf(train->out, on_h1), Contains("begins on h0")) << train->out;
  AwaitStatus("1", "RUNNING");
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
}

TEST_F(KubernetesExperiment, ASupervisorThatIsKilledHasASuccessorInItsPod) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  InPod(
      "",
      "for p in /proc/[0-9]*; do tr \"\\\\0\" \" \" <$p/cmdline | grep -q \" supervise 1[ ]\" && kill -9 ${p#/proc/}; "
      "done; true");
  AwaitTakeOvers(1);
  LetEnd();
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_EQ(LinesOf(train->out, "1.master").size(), 3U) << train->out;  // it wasn't started again
}

TEST_F(KubernetesExperiment, ASupervisorsPodThatIsLostEndsTheJob) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  Strike("oom", "");
  EXPECT_EQ(train->Wait(), 137) << train->err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(ContainsRegex("its job muster-1-[0-9a-f]+ of Kubernetes has ended"), HasSubstr("OOMKilled")));
  EXPECT_THAT(LinesOf(Out({"logs", "1"}), "1.master"), Contains(ContainsRegex("begins on h[01]")));
}

// The supervisor can't tell it from a drain.
TEST_F(KubernetesExperiment, DeletingTheSupervisorsPodEndsTheRunAndSaysHowItGoesOn) {
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  cluster().Ask({"delete", "pod", JobOf("1"), "--wait=false"});
  EXPECT_NE(train->Wait(), 0) << train->err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("was told to end"), HasSubstr("muster train --experiment 1 goes on with it")));
}

TEST_F(KubernetesExperiment, ASupervisorsPodThatIsPreemptedHasFailedWithItsLastLines) {
  WriteCluster("{worker: 2}", "trap \"echo ends gently; exit 5\" TERM; " + UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  Strike("preempt", "");
  EXPECT_NE(train->Wait(), 0) << train->err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(), HasSubstr("muster train --experiment 1 goes on"));
  for (const char* task : {"1.master", "1.worker.1"})
    EXPECT_THAT(LinesOf(train->out, task), Contains("ends gently")) << train->out;
}

TEST_F(KubernetesExperiment, WhatKeepsItFromTheClusterIsSaidAndNothingIsMade) {
  const auto refused = [this](const std::vector<std::string>& flags) {
    WriteExperiment("run: 'true'");
    const Said said = Muster(Joined({"train"}, flags));
    EXPECT_NE(said.exit_code, 0) << said.out;
    AwaitNothingLeft();
    return said.err;
  };
  WriteExperiment("run: 'true'");
  const Said other = Muster({"train", "--kubernetes", "context=other"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("kubectl knows no context 'other'"));
  EXPECT_THAT(refused({"--kubernetes", "namespace=none"}), HasSubstr("there is no namespace 'none'"));
  EXPECT_THAT(refused({"--kubernetes", "kubectl=/nowhere/kubectl"}), HasSubstr("there is no /nowhere/kubectl here"));
  EXPECT_THAT(refused({"--kubernetes", "claims=absent:/data"}), HasSubstr("a claim isn't there"));
  EXPECT_THAT(refused({"--kubernetes", "gang=volcano"}), HasSubstr("this cluster has no volcano"));
  // Without one of these a job would be made that nobody can look at, or take away.
  for (const std::vector<std::string>& right : std::vector<std::vector<std::string>>{{"create", "pods"},
                                                                                     {"create", "pods/exec"},
                                                                                     {"get", "pods"},
                                                                                     {"list", "pods"},
                                                                                     {"delete", "pods"},
                                                                                     {"delete", "services"},
                                                                                     {"delete", "secrets"}}) {
    SetFaults(absl::StrCat(R"({"forbid": [{"verb": ")", right[0], R"(", "resource": ")", right[1], R"("}]})"));
    WriteExperiment("run: 'true'");
    EXPECT_THAT(Muster({"train"}).err, HasSubstr(absl::StrCat("you may not ", right[0], " ", right[1],
                                                              " in namespace default (context standin)")));
    SetFaults(R"({"forbid": []})");
    AwaitNothingLeft();
  }
  SetFaults(R"({"forbid": []})");
  cluster().Apply(R"({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": )"
                  R"({"pods": "2"}}})");
  EXPECT_THAT(refused({}),
              HasSubstr("can never hold this job, whose pods together ask for more than there may be: quota "
                        "few: asked pods=3, hard pods=2"));
  cluster().Ask({"delete", "resourcequota", "few"});
  WriteExperiment("run: 'true'");
  EXPECT_THAT(Out({"train", "--dry-run"}),
              HasSubstr("Kubernetes says: context standin, namespace default would take it"));
  cluster().KillApi();
  const Said down = Muster({"train"});
  cluster().StartApi();
  EXPECT_EQ(down.exit_code, 1) << "no mistake of the user's: the same command may do later";
  EXPECT_THAT(down.err, HasSubstr("(context standin, namespace default) doesn't answer kubectl: "));
  EXPECT_THAT(Muster({"ls"}).out, Not(HasSubstr("PENDING")));
}

}  // namespace
}  // namespace muster::kubernetes_experiment_test
