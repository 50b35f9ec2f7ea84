// A stand-in for a Kubernetes cluster on simulated hosts, which the real kubectl talks to: its API on h0, a kubelet on
// each node, whose pods are processes of that host at addresses of their own (10.77.0.128 and up). docs/development.md
// says what it does and what it doesn't. All of it ends with this object, pods included. Used by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

// What a node says that it has, as Kubernetes writes amounts.
struct KubeNode {
  std::string cpus = "4";
  std::string memory = "4Gi";
  std::string gpus = "0";
  std::string labels = "";  // "A=B,C=D"
  std::string taint = "";   // "KEY=VALUE:NoSchedule"
};

struct KubeOptions {
  int node_grace_s = 4;       // a node that is silent for longer is lost
  int node_eviction_s = 300;  // its pods are deleted after as long, unless they say otherwise
};

class KubeCluster {
 public:
  // As SimulatedHosts::WhyNot.
  static std::string WhyNot();

  // `nodes`: h1, h2, …; the hosts must outlive it. Returns when the API has all nodes.
  KubeCluster(const SimulatedHosts& hosts, const std::vector<KubeNode>& nodes, const KubeOptions& options = {});
  ~KubeCluster();
  KubeCluster(const KubeCluster&) = delete;
  KubeCluster& operator=(const KubeCluster&) = delete;

  // Returns the administrator's, whose namespace is "default".
  std::string kubeconfig() const { return folder_ + "/kubeconfig"; }
  // Returns the variable by which kubectl finds the cluster, "KUBECONFIG=…".
  std::string variable() const { return "KUBECONFIG=" + kubeconfig(); }
  // Writes the kubeconfig of a service account, which need not exist yet, and returns its path.
  std::string KubeconfigOf(const std::string& space, const std::string& account) const;
  // Returns the words that run `words` on h0 as a user of this cluster, with a home directory of its own, for Process.
  std::vector<std::string> OnH0(const std::vector<std::string>& words) const;
  // Runs kubectl on h0, and returns what it has printed, both streams together. It must end with 0.
  std::string Ask(const std::vector<std::string>& words) const;
  // The same with a text, such as a manifest in JSON, at stdin: `kubectl apply -f -`.
  std::string Apply(const std::string& manifest) const;

  // Sets faults ("faults") or strikes pods ("pods/evict", "pods/oom", "pods/kill", "pods/preempt") by JSON, and returns
  // the answer: {"images": ["muster:*"]}, {"pod": "a*"}.
  std::string Script(const std::string& path, const std::string& json) const;
  // Kills the API server, and starts it again with what it knew. Pods go on meanwhile.
  void KillApi();
  void StartApi();
  // Kills a node's kubelet and with it all its pods, and waits until nothing but sshd runs there.
  // SimulatedHosts::Crash loses the whole host.
  void KillNode(const std::string& node);
  // Starts a kubelet on a node that has none, or whose host has been restarted.
  void StartNode(const std::string& node);
  // Waits until no process of a pod runs on a host.
  void AwaitNothingElseOn(const std::string& host) const;

 private:
  std::vector<std::string> Words(const std::string& command, const std::vector<std::string>& arguments) const;
  void AwaitNodes(size_t count) const;
  // Waits for the ends of processes whose words it is asked about.
  void AwaitEndsOn(const std::string& host, absl::FunctionRef<bool(const std::string&)> is_awaited) const;

  const SimulatedHosts& hosts_;
  const std::vector<KubeNode> nodes_;
  const std::string folder_;
  std::unique_ptr<Process> api_;
  std::map<std::string, std::unique_ptr<Process>> kubelets_;
};

}  // namespace muster
