#include "tests/process/testing/ray_cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

constexpr int kRayPort = 6379;
// One processor has to do for all: no process waits for work, and nobody watches the memory of this machine. A node
// that is gone is noticed within seconds.
constexpr const char* kRaySettings[] = {
    "RAY_prestart_worker_first_driver=0",     "RAY_memory_monitor_refresh_ms=0",
    "RAY_health_check_initial_delay_ms=1000", "RAY_health_check_period_ms=1000",
    "RAY_health_check_timeout_ms=2000",       "RAY_health_check_failure_threshold=3",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV=0",        "PYTHONUNBUFFERED=1"};

std::string FolderOfPython() { return SourceFolder() + "/.venv/bin"; }

}  // namespace

std::string RayCluster::python() { return FolderOfPython() + "/python"; }

std::string RayCluster::WhyNot() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) return why;
  if (access((FolderOfPython() + "/ray").c_str(), X_OK) == 0) return "";
  return NoTestBecause("Ray isn't installed: tools/setup.sh --for test does");
}

RayCluster::RayCluster(const SimulatedHosts& hosts, const std::vector<int>& cpus) : hosts_(hosts), cpus_(cpus) {
  StartOn(hosts_.names().front());
  for (size_t i = 1; i < cpus_.size(); ++i) StartOn(hosts_.names()[i]);
}

RayCluster::~RayCluster() = default;

void RayCluster::StartOn(const std::string& host) {
  const size_t i =
      static_cast<size_t>(std::find(hosts_.names().begin(), hosts_.names().end(), host) - hosts_.names().begin());
  const std::string head = absl::StrCat(SimulatedHosts::AddressOf("h1"), ":", kRayPort);
  std::vector<std::string> words = {"env"};
  words.insert(words.end(), std::begin(kRaySettings), std::end(kRaySettings));
  words.insert(words.end(),
               {python(), FolderOfPython() + "/ray", "start", "--node-ip-address=" + SimulatedHosts::AddressOf(host),
                absl::StrCat("--num-cpus=", cpus_[i]), "--num-gpus=0", "--object-store-memory=80000000",
                "--disable-usage-stats", "--block"});
  if (i == 0)
    words.insert(words.end(), {"--head", absl::StrCat("--port=", kRayPort), "--dashboard-host=0.0.0.0"});
  else
    words.push_back("--address=" + head);
  nodes_[host] = std::make_unique<Process>(hosts_.On(host, words), ProcessOptions{.output_together = true});
  nodes_[host]->WaitForOut("Ray runtime started.");
  AwaitNodes(nodes_.size());
}

void RayCluster::AwaitNodes(size_t count) const {
  std::string said;
  const std::string wanted = absl::StrCat("nodes: ", count, "\n");
  constexpr char kProgram[] =
      "import sys, urllib.request, json\n"
      "text = urllib.request.urlopen(sys.argv[1] + '/nodes?view=summary', timeout=5).read()\n"
      "nodes = json.loads(text)['data']['summary']\n"
      "print('nodes:', sum(node['raylet'].get('state') == 'ALIVE' for node in nodes))";
  for (const absl::Time give_up = absl::Now() + absl::Minutes(1); said != wanted && absl::Now() < give_up;) {
    Process look(hosts_.On("h0", {python(), "-c", kProgram, address()}));
    look.Wait();
    said = look.out;
  }
  EXPECT_EQ(said, wanted);
}

void RayCluster::KillOn(const std::string& host) {
  Watched watched;
  for (const SimulatedHosts::Running& running : hosts_.ProcessesOf(host)) {
    if (!IsRay(running.words) && !absl::StartsWith(running.words, "ray::")) continue;
    watched.Add(running.pid);
    kill(running.pid, SIGKILL);
  }
  nodes_.erase(host);
  watched.WaitForEnds();
}

std::string RayCluster::Ask(const std::vector<std::string>& words) const {
  Process command(
      hosts_.On("h0", Joined({"env", "RAY_ADDRESS=" + address(), python(), FolderOfPython() + "/ray"}, words)),
      {.output_together = true});
  EXPECT_EQ(command.Wait(), 0) << absl::StrJoin(words, " ") << ": " << command.out;
  return command.out;
}

// Programs of Ray's package, its own workers, and those between two jobs.
bool RayCluster::IsRay(const std::string& words) {
  const bool is_of_job = absl::StartsWith(words, "ray::HostAgent") || absl::StartsWith(words, "ray::JobSupervisor");
  if (absl::StartsWith(words, "ray::")) return !is_of_job;
  for (const char* text :
       {"site-packages/ray/", "/bin/ray start", " -m ray.", "ray-dashboard", " multiprocessing.", "while kill -s 0"})
    if (absl::StrContains(words, text)) return true;
  return false;
}

void RayCluster::AwaitNothingElseOn(const std::string& host) const {
  for (size_t left = 1; left > 0;) {
    Watched watched;
    for (const SimulatedHosts::Running& running : hosts_.ProcessesOf(host))
      if (!IsRay(running.words)) watched.Add(running.pid);
    left = watched.size();
    watched.WaitForEnds();
  }
  if (!hosts_.is_up(host)) return;
  const std::string own_root = absl::StrCat("/proc/", hosts_.FirstOf(host), "/root");
  const std::string folder = absl::StrCat(own_root, "/tmp/muster-ray-", geteuid());
  std::vector<std::string> files;
  for (const std::string& name : std::filesystem::exists(folder) ? EntriesOf(folder) : std::vector<std::string>())
    if (!absl::StartsWith(name, "bin-")) files.push_back(name);
  EXPECT_EQ(files, std::vector<std::string>()) << host;
}

}  // namespace muster
