// The stand-in for a Kubernetes cluster on simulated hosts: its pods reach each other, outlive its API server, die with
// their node, and leave nothing behind.
#include "tests/process/testing/kube_cluster.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace muster::kube_cluster_test {
namespace {

constexpr char kService[] =
    R"({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "all"}, "spec": {"clusterIP": "None",)"
    R"( "publishNotReadyAddresses": true, "selector": {"app": "test"}, "ports": [{"port": 7000}]}})";

// A pod on a node that runs a line of shell.
std::string Pod(const std::string& name, const std::string& node, const std::string& line) {
  return absl::StrCat(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ")", name,
                      R"(", "labels": {"app": "test"}}, "spec": {"restartPolicy": "Never", "hostname": ")", name,
                      R"(", "subdomain": "all", "terminationGracePeriodSeconds": 1, "nodeSelector": )",
                      R"({"kubernetes.io/hostname": ")", node,
                      R"("}, "containers": [{"name": "main", "image": "any", "command": ["sh", "-c", ")", line,
                      R"("]}]}})");
}

class KubeClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = KubeCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  // Asks until a field of a pod is as expected.
  static void Await(const KubeCluster& cluster, const std::string& pod, const std::string& field,
                    const std::string& expected) {
    std::string said;
    for (const absl::Time give_up = absl::Now() + absl::Minutes(1); said != expected && absl::Now() < give_up;)
      said = cluster.Ask({"get", "pod", pod, "-o", absl::StrCat("jsonpath={", field, "}")});
    EXPECT_EQ(said, expected) << pod << " " << field;
  }
};

TEST_F(KubeClusterTest, PodsReachEachOtherByNameAndOutliveTheApi) {
  SimulatedHosts hosts(2);
  {
    KubeCluster cluster(hosts, {{}, {}});
    cluster.Apply(kService);
    cluster.Apply(Pod("server", "h1", "exec python3 -m http.server 7000"));
    cluster.Apply(Pod("client", "h2",
                      "until python3 -c 'import urllib.request as u; u.urlopen(\\\"http://server.all:7000\\\")' "
                      "2>/dev/null; do :; done; echo reached"));
    Await(cluster, "client", ".status.phase", "Succeeded");
    EXPECT_EQ(cluster.Ask({"logs", "client"}), "reached\n");
    cluster.KillApi();
    cluster.StartApi();
    Await(cluster, "server", ".status.phase", "Running");
    EXPECT_TRUE(absl::StrContains(cluster.Ask({"exec", "server", "--", "hostname"}), "server"));
  }
  for (const std::string& host : hosts.names()) hosts.AwaitNothingOn(host);
}

TEST_F(KubeClusterTest, AHostThatIsLostLosesItsPods) {
  SimulatedHosts hosts(2);
  KubeCluster cluster(hosts, {{}, {}}, {.node_grace_s = 2, .node_eviction_s = 0});
  cluster.Apply(Pod("lost", "h2", "exec tail -f /dev/null"));
  Await(cluster, "lost", ".status.phase", "Running");
  hosts.Crash("h2");
  Await(cluster, "lost", ".status.reason", "NodeLost");
  hosts.Restart("h2");
  cluster.StartNode("h2");
  std::string left = "pod/lost";
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1); !left.empty() && absl::Now() < give_up;)
    left = cluster.Ask({"get", "pod", "lost", "--ignore-not-found", "-o", "name"});
  EXPECT_EQ(left, "");
}

}  // namespace
}  // namespace muster::kube_cluster_test
