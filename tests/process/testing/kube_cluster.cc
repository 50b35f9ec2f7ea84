#include "tests/process/testing/kube_cluster.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/system/find_program.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/python_with.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kPodAddresses[] = "10.77.0.128-10.77.0.250";
constexpr char kPlacesOfPrograms[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// A folder of the host's own /run, with files that end with the kubelet.
constexpr char kKubeletScript[] = R"(
mkdir -p /run/kubelet
mount -t tmpfs tmpfs /run/kubelet
exec "$@"
)";

// Returns where the python of the tests is really, which a pod with a /root of its own wouldn't see.
std::string RealFolderOfPython() {
  std::error_code none;
  return fs::canonical(FolderOfPython() + "/python", none).parent_path().parent_path();
}

std::string StandIn() { return SourceFolder() + "/tests/process/testing/kube/standin.py"; }

}  // namespace

std::string KubeCluster::WhyNot() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) return why;
  for (const char* program : {"kubectl", "openssl", "python3"})
    if (const auto found = FindProgram(program, kPlacesOfPrograms); !found.ok())
      return NoTestBecause(absl::StrCat(program, " isn't installed: tools/setup.sh --for test does"));
  return "";
}

KubeCluster::KubeCluster(const SimulatedHosts& hosts, const std::vector<KubeNode>& nodes, const KubeOptions& options)
    : hosts_(hosts), nodes_(nodes), folder_(hosts.shared() + "/kube") {
  fs::create_directory(folder_);
  Process init(Words("init", {"--address", SimulatedHosts::AddressOf("h0"), "--pod-addresses", kPodAddresses,
                              absl::StrCat("--node-grace=", options.node_grace_s),
                              absl::StrCat("--node-eviction=", options.node_eviction_s)}),
               {.output_together = true});
  EXPECT_EQ(init.Wait(), 0) << init.out;
  StartApi();
  for (size_t i = 0; i < nodes_.size(); ++i) StartNode(hosts_.names()[i]);
  AwaitNodes(nodes_.size());
}

KubeCluster::~KubeCluster() {
  while (!kubelets_.empty()) {
    const std::string node = kubelets_.begin()->first;
    KillNode(node);
  }
  api_.reset();
  std::error_code gone;
  fs::remove_all(folder_, gone);
}

std::vector<std::string> KubeCluster::Words(const std::string& command,
                                            const std::vector<std::string>& arguments) const {
  return Joined({"/usr/bin/env", "python3", StandIn(), command, folder_}, arguments);
}

void KubeCluster::StartApi() {
  api_ = std::make_unique<Process>(hosts_.On("h0", Words("api", {})), ProcessOptions{.output_together = true});
  api_->WaitForOut("api: ready\n");
}

void KubeCluster::KillApi() {
  api_->Signal(SIGKILL);
  api_->Reap();
}

void KubeCluster::StartNode(const std::string& node) {
  const size_t i =
      static_cast<size_t>(std::find(hosts_.names().begin(), hosts_.names().end(), node) - hosts_.names().begin());
  ASSERT_LT(i, nodes_.size()) << node;
  const KubeNode& has = nodes_[i];
  std::vector<std::string> arguments = {"--name=" + node,
                                        "--address=" + SimulatedHosts::AddressOf(node),
                                        "--root=/run/kubelet",
                                        "--pod-interface=eth0",
                                        "--cpus=" + has.cpus,
                                        "--memory=" + has.memory,
                                        "--gpus=" + has.gpus,
                                        "--labels=" + has.labels,
                                        "--visible=" + SourceFolder(),
                                        "--visible=" + BinFolder(),
                                        "--visible=" + RealFolderOfPython()};
  if (!has.taint.empty()) arguments.push_back("--taint=" + has.taint);
  kubelets_[node] = std::make_unique<Process>(
      hosts_.On(node,
                Joined({"unshare", "--mount", "sh", "-ec", kKubeletScript, "kubelet"}, Words("kubelet", arguments))),
      ProcessOptions{.output_together = true});
  kubelets_[node]->WaitForOut("kubelet: ready\n");
}

void KubeCluster::KillNode(const std::string& node) {
  ASSERT_TRUE(kubelets_.contains(node)) << node;
  kubelets_[node]->Signal(SIGKILL);
  kubelets_.erase(node);
  AwaitEndsOn(node, [](const std::string&) { return true; });
}

void KubeCluster::AwaitNodes(size_t count) const {
  const auto nodes = [this] { return Ask({"get", "nodes", "-o", "name"}); };
  size_t there = 0;
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1); there != count && absl::Now() < give_up;) {
    const std::string names = nodes();
    there = static_cast<size_t>(std::count(names.begin(), names.end(), '\n'));
  }
  EXPECT_EQ(there, count) << nodes();
}

std::vector<std::string> KubeCluster::OnH0(const std::vector<std::string>& words) const {
  return hosts_.On("h0", Joined({"env", variable(), "HOME=" + folder_}, words));
}

std::string KubeCluster::Ask(const std::vector<std::string>& words) const {
  Process kubectl(OnH0(Joined({"kubectl"}, words)), {.output_together = true});
  EXPECT_EQ(kubectl.Wait(), 0) << absl::StrJoin(words, " ") << ": " << kubectl.out;
  return kubectl.out;
}

std::string KubeCluster::Apply(const std::string& manifest) const {
  const std::string file = folder_ + "/applied";
  std::ofstream(file) << manifest;
  return Ask({"apply", "-f", file});
}

std::string KubeCluster::KubeconfigOf(const std::string& space, const std::string& account) const {
  Process write(Words("account", {space, account}), {.output_together = true});
  EXPECT_EQ(write.Wait(), 0) << write.out;
  return write.out.substr(0, write.out.find('\n'));
}

std::string KubeCluster::Script(const std::string& path, const std::string& json) const {
  Process script(hosts_.On("h0", Words("script", {path, json})), {.output_together = true});
  EXPECT_EQ(script.Wait(), 0) << path << " " << json << ": " << script.out;
  return script.out;
}

void KubeCluster::AwaitNothingElseOn(const std::string& host) const {
  AwaitEndsOn(host, [](const std::string& words) { return !absl::StrContains(words, "kube/standin.py"); });
}

// A container's processes are in a namespace below the host's, where ProcessesOf doesn't see them; but what holds them
// is on the host.
void KubeCluster::AwaitEndsOn(const std::string& host, absl::FunctionRef<bool(const std::string&)> is_awaited) const {
  for (size_t left = 1; left > 0;) {
    Watched watched;
    for (const SimulatedHosts::Running& running : hosts_.ProcessesOf(host))
      if (is_awaited(running.words)) watched.Add(running.pid);
    left = watched.size();
    watched.WaitForEnds();
  }
}

}  // namespace muster
