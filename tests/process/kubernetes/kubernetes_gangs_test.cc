// Jobs whose pods start together or not at all, by each system that muster knows, as the stand-in for a cluster acts
// it. Not of every day.
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/process/kubernetes/kubernetes_experiment.h"

namespace muster::kubernetes_gangs_test {
namespace {

using ::testing::Contains;

class KubernetesGangsLong : public KubernetesExperiment {
 protected:
  // Each of the job's three pods asks for 1500m, and each of the two nodes has 4 CPUs.
  void WriteJob(const std::string& gang) {
    SetFaults(absl::StrCat(R"({"apis": [")", gang, R"("]})"));
    pods_ = absl::StrCat("nodes: 2, gang: ", gang, gang == "kueue" ? ", queue: team" : "",
                         ", pod_template: {spec: {containers: [{name: muster, resources: {requests: {cpu: 1500m}}}]}}");
    WriteCluster("{worker: 2}", "echo begins");
  }
  // Leaves room for two of them.
  static void Block() {
    cluster().Apply(
        R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "blocker"}, "spec": {)"
        R"("terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "muster:1", "command": )"
        R"(["sleep", "1000"], "resources": {"requests": {"cpu": "3"}}}]}})");
    cluster().Ask({"wait", "--for=condition=PodScheduled", "pod/blocker", "--timeout=60s"});
  }
  static void Unblock() { cluster().Ask({"delete", "pod", "blocker", "--ignore-not-found"}); }
  static void SetQuota(const std::string& cpus) {
    cluster().Apply(absl::StrCat(
        R"({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": )",
        R"({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [{"name": )",
        R"("cpu", "nominalQuota": ")", cpus, R"("}]}]}]}})"));
  }
  // `waits`: what is said of the pods while there is no room; `objects`: the kind that holds the gang together.
  void ExpectAllOrNothing(const std::string& waits, const std::string& objects,
                          const std::function<void()>& make_room) {
    const auto train = StartMuster({"train"});
    AwaitStatus("1", absl::StrCat("0 of 3 pods run; ", waits));
    EXPECT_EQ(cluster().Ask({"get", "pods", "--selector=muster/job", "--output=jsonpath={.items[*].spec.nodeName}"}),
              "")
        << "no pod keeps room from others";
    make_room();
    EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
    for (const char* task : {"1.master", "1.worker.1"}) EXPECT_THAT(LinesOf(train->out, task), Contains("begins"));
    AwaitNothingLeft();
    EXPECT_EQ(AwaitNone(objects), "");
  }
  void TearDown() override {
    if (!IsSkipped()) Unblock();
    KubernetesExperiment::TearDown();
  }
};

TEST_F(KubernetesGangsLong, CoschedulingBindsAllPodsOrNone) {
  WriteJob("coscheduling");
  Block();
  ExpectAllOrNothing(
      "the supervisor, h0: Unschedulable: optimistic rejection in PostFilter; h1: Unschedulable: 0/2 nodes are "
      "available: 2 Insufficient cpu.",
      "podgroups.scheduling.x-k8s.io", Unblock);
}

TEST_F(KubernetesGangsLong, VolcanoBindsAllPodsOrNone) {
  WriteJob("volcano");
  Block();
  ExpectAllOrNothing(
      "the supervisor, h0: Unschedulable: 1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 "
      "minAvailable; h1: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.",
      "podgroups.scheduling.volcano.sh", Unblock);
}

TEST_F(KubernetesGangsLong, KueueOpensTheGatesOfAllPodsOrOfNone) {
  WriteJob("kueue");
  SetQuota("4");
  cluster().Apply(R"({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "team"}, )"
                  R"("spec": {"clusterQueue": "all"}})");
  ExpectAllOrNothing("the supervisor, h0, h1: SchedulingGated: Scheduling is blocked due to non-empty scheduling gates",
                     "workloads.kueue.x-k8s.io", [] { SetQuota("5"); });
  cluster().Ask({"delete", "clusterqueues,localqueues", "--all"});
}

}  // namespace
}  // namespace muster::kubernetes_gangs_test
