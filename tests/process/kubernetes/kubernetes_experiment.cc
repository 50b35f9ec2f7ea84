#include "tests/process/kubernetes/kubernetes_experiment.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"

namespace muster {
namespace {

constexpr absl::Duration kPodsPatience = absl::Minutes(1);
constexpr char kNoFaults[] = R"({"images": ["*"], "forbid": [], "unschedulable": {}, "hold_scheduling": false, )"
                             R"("dns_delay_s": 0, "apis": []})";
constexpr char kClaim[] =
    R"({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "gate"}, "spec":)"
    R"( {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}})";

}  // namespace

KubernetesExperiment::Suite::Suite() {
  cluster.Apply(kClaim);
  std::string volume;
  for (const absl::Time give_up = absl::Now() + kPodsPatience; volume.empty() && absl::Now() < give_up;)
    volume = cluster.Ask({"get", "persistentvolumeclaim", "gate", "--output=jsonpath={.spec.volumeName}"});
  claim = absl::StrCat(hosts.shared(), "/kube/claims/", volume);
}

std::unique_ptr<KubernetesExperiment::Suite>& KubernetesExperiment::OfSuite() {
  static std::unique_ptr<Suite> suite;
  return suite;
}

std::string KubernetesExperiment::NewFolder() {
  if (!KubeCluster::WhyNot().empty()) return "";
  if (OfSuite() == nullptr) OfSuite() = std::make_unique<Suite>();
  return absl::StrCat(OfSuite()->hosts.shared(), "/test", ++OfSuite()->tests);
}

std::string KubernetesExperiment::MoreOfFile() const {
  return absl::StrCat("on: kubernetes\ngrace: 10s\nkubernetes: {image: \"muster:1\", muster: ", BinFolder(),
                      "/muster, claims: [\"gate:/gate\"], ", pods_, "}\n");
}

void KubernetesExperiment::Strike(const std::string& how, const std::string& suffix) {
  cluster().Script(absl::StrCat("pods/", how), nlohmann::json{{"pod", JobOf("1") + suffix}}.dump());
}

void KubernetesExperiment::MakeTrainer() {
  cluster().Apply(R"({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}})");
  cluster().Apply(
      R"({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "trainer"},)"
      R"( "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},)"
      R"( "subjects": [{"kind": "ServiceAccount", "name": "trainer", "namespace": "default"}]})");
}

std::string KubernetesExperiment::LeftOfJobs() {
  return cluster().Ask({"get", "pods,services,secrets", "--selector=muster/job", "--output=name"});
}

void KubernetesExperiment::AwaitTries(const std::string& id, int count) {
  int tries = 0;
  for (const absl::Time give_up = absl::Now() + kPodsPatience; tries < count && absl::Now() < give_up;)
    tries = Json({"status", id}).value("job", nlohmann::json::object()).value("tries", 0);
  EXPECT_GE(tries, count);
}

void KubernetesExperiment::AwaitNothingLeft() {
  std::string left = "unknown";
  for (const absl::Time give_up = absl::Now() + kPodsPatience; !left.empty() && absl::Now() < give_up;)
    left = LeftOfJobs();
  EXPECT_EQ(left, "");
  for (const std::string& host : hosts().names()) cluster().AwaitNothingElseOn(host);
}

std::string KubernetesExperiment::AwaitNone(const std::string& kind) {
  std::string left = "unknown";
  for (const absl::Time give_up = absl::Now() + kPodsPatience; !left.empty() && absl::Now() < give_up;)
    left = cluster().Ask({"get", kind, "--output=name"});
  return left;
}

void KubernetesExperiment::TearDown() {
  if (OfSuite() == nullptr) return;
  SetFaults(kNoFaults);
  AwaitNothingLeft();
}

std::string KubernetesExperiment::InPod(const std::string& suffix, const std::string& line) {
  return cluster().Ask({"exec", JobOf("1") + suffix, "--", "sh", "-c", line});
}

std::string KubernetesExperiment::InClaim(const std::string& name) { return absl::StrCat(OfSuite()->claim, "/", name); }

std::string KubernetesExperiment::Gate() { return absl::StrCat("test", OfSuite()->tests); }

void KubernetesExperiment::LetEnd() const { std::ofstream(InClaim(Gate())) << "\n"; }

std::string KubernetesExperiment::UntilStop() const {
  return absl::StrCat("setsid env -i sleep 1000 & echo begins on $(hostname); until [ -e /gate/", Gate(),
                      " ]; do sleep 0.1; done");
}

}  // namespace muster
