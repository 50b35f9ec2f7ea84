#include "tests/process/testing/ray_cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/python_with.h"

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

constexpr char kRayHead[] = "h1";
constexpr char kStarted[] = "Ray runtime started.";
// Asks the dashboard until so many nodes live. Nobody tells it.
constexpr char kCountNodes[] = R"(
import json, os, sys, time, urllib.request

headers = {"Authorization": "Bearer " + os.environ.get("RAY_AUTH_TOKEN", "")}
request = urllib.request.Request(sys.argv[1] + "/nodes?view=summary", headers=headers)
count, until = -1, time.monotonic() + 60
while count != int(sys.argv[2]) and time.monotonic() < until:
    try:
        text = urllib.request.urlopen(request, timeout=5).read()
        count = sum(node["raylet"].get("state") == "ALIVE" for node in json.loads(text)["data"]["summary"])
    except (OSError, ValueError, KeyError):
        pass
    time.sleep(0.1)
sys.exit(0 if count == int(sys.argv[2]) else f"{count} nodes of Ray live, not {sys.argv[2]}")
)";

}  // namespace

std::string RayCluster::python() { return FolderOfPython() + "/python"; }

std::string RayCluster::WhyNot() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) return why;
  if (access((FolderOfPython() + "/ray").c_str(), X_OK) == 0) return "";
  return NoTestBecause("Ray isn't installed: tools/setup.sh --for test does");
}

RayCluster::RayCluster(const SimulatedHosts& hosts, const std::vector<int>& cpus, const RayFeatures& features)
    : hosts_(hosts), cpus_(cpus), features_(features) {
  StartOn({hosts_.names().begin(), hosts_.names().begin() + static_cast<ptrdiff_t>(cpus_.size())});
}

RayCluster::~RayCluster() = default;

void RayCluster::StartOn(const std::vector<std::string>& hosts, const std::vector<std::string>& settings) {
  for (const std::string& host : hosts) {
    Begin(host, settings);
    if (host == kRayHead) nodes_[host]->WaitForOut(kStarted);
  }
  for (const std::string& host : hosts)
    if (host != kRayHead) nodes_[host]->WaitForOut(kStarted);
  AwaitNodes(nodes_.size(), settings);
}

void RayCluster::Begin(const std::string& host, const std::vector<std::string>& settings) {
  const size_t i =
      static_cast<size_t>(std::find(hosts_.names().begin(), hosts_.names().end(), host) - hosts_.names().begin());
  const auto gpus = features_.gpus.find(host);
  // As for slurmd (SlurmCluster::StartNode): Ray asks for the path of where it is.
  std::vector<std::string> words = {"env", "--chdir=/", "PATH=" + features_.path};
  words.insert(words.end(), std::begin(kRaySettings), std::end(kRaySettings));
  words.insert(words.end(), settings.begin(), settings.end());
  if (gpus != features_.gpus.end()) words.push_back("CUDA_VISIBLE_DEVICES=" + gpus->second);
  const auto count = gpus == features_.gpus.end() ? 0 : std::count(gpus->second.begin(), gpus->second.end(), ',') + 1;
  words.insert(words.end(),
               {python(), FolderOfPython() + "/ray", "start", "--node-ip-address=" + SimulatedHosts::AddressOf(host),
                absl::StrCat("--num-cpus=", cpus_[i]), absl::StrCat("--num-gpus=", count),
                "--object-store-memory=80000000", "--include-log-monitor=false", "--disable-usage-stats", "--block"});
  if (host == kRayHead)
    words.insert(words.end(),
                 {"--head", absl::StrCat("--port=", kRayPort), "--dashboard-host=0.0.0.0", "--no-monitor"});
  else
    words.push_back(absl::StrCat("--address=", SimulatedHosts::AddressOf(kRayHead), ":", kRayPort));
  nodes_[host] = std::make_unique<Process>(hosts_.On(host, words), ProcessOptions{.output_together = true});
}

void RayCluster::AwaitNodes(size_t count, const std::vector<std::string>& settings) const {
  Process look(hosts_.On(
      "h0", Joined(Joined({"env"}, settings), {python(), "-c", kCountNodes, address(), absl::StrCat(count)})));
  EXPECT_EQ(look.Wait(), 0) << look.out << look.err;
}

void RayCluster::KillRayletOn(const std::string& host) {
  int raylets = 0;
  for (const SimulatedHosts::Running& running : hosts_.ProcessesOf(host))
    if (absl::StrContains(running.words, "/raylet/raylet ")) raylets += kill(running.pid, SIGKILL) == 0 ? 1 : 0;
  EXPECT_EQ(raylets, 1) << host;
  nodes_.at(host)->Wait();
  nodes_.erase(host);
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

// Programs of Ray's package, its own workers, and those between two jobs. What starts a job's driver is of Ray, and
// ends a second after it.
bool RayCluster::IsRay(const std::string& words) {
  if (absl::StartsWith(words, "ray::")) return !absl::StartsWith(words, "ray::HostAgent");
  if (absl::StripAsciiWhitespace(words) == "sleep 1") return true;  // of the shell that looks after a job's driver
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
