#include "tests/process/testing/spark_cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/python_with.h"

namespace muster {
namespace {

constexpr char kHead[] = "h1";
constexpr int kWebPort = 8080, kWebPortWithSecret = 8082;
constexpr char kMaster[] = "org.apache.spark.deploy.master.Master";
constexpr char kWorker[] = "org.apache.spark.deploy.worker.Worker";
// Each job starts a JVM for its driver and one for each executor, none of which lives long: optimising their code takes
// longer than it saves.
constexpr char kShortLived[] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";
// Its log is read after a failure only, and would fill a pipe. $1: a file; the other words are the program.
constexpr char kLogged[] = R"(log=$1; shift; exec "$@" >>"$log" 2>&1)";
// Asks the master until so many workers live. Nobody tells it.
constexpr char kCountWorkers[] = R"(
import json, sys, time, urllib.request

count, until = -1, time.monotonic() + 100
while count != int(sys.argv[2]) and time.monotonic() < until:
    try:
        count = json.loads(urllib.request.urlopen(sys.argv[1], timeout=5).read())["aliveworkers"]
    except (OSError, ValueError, KeyError):
        pass
    time.sleep(0.1)
sys.exit(0 if count == int(sys.argv[2]) else f"{count} workers of Spark live, not {sys.argv[2]}")
)";

bool IsSpark(const std::string& words) {
  return absl::StrContains(words, kMaster) || absl::StrContains(words, kWorker);
}

}  // namespace

std::string SparkCluster::python() { return FolderOfPython() + "/python"; }

std::string SparkCluster::WhyNoSpark() {
  if (access((FolderOfPython() + "/spark-submit").c_str(), X_OK) == 0 && access("/usr/bin/java", X_OK) == 0) return "";
  return NoTestBecause("Spark or a JRE isn't installed: tools/setup.sh --for spark does");
}

std::string SparkCluster::WhyNot() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) return why;
  return WhyNoSpark();
}

SparkCluster::SparkCluster(const SimulatedHosts& hosts, const std::vector<int>& cores,
                           const std::map<std::string, std::vector<std::string>>& gpus)
    : hosts_(hosts) {
  BeginMaster();
  for (size_t i = 0; i < cores.size(); ++i) {
    const std::string& host = hosts_.names()[i];
    const auto devices = gpus.find(host);
    StartWorker(host, cores[i], devices == gpus.end() ? std::vector<std::string>() : devices->second);
  }
  AwaitWorkers(kWebPort, workers_.size());
}

SparkCluster::~SparkCluster() = default;

void SparkCluster::StartWorker(const std::string& host, int cores, const std::vector<std::string>& gpus) {
  std::vector<std::string> variables;
  if (!gpus.empty()) {
    const std::string file = absl::StrCat(hosts_.shared(), "/gpus.", host);
    const nlohmann::json id = {{"componentName", "spark.worker"}, {"resourceName", "gpu"}};
    std::ofstream(file) << nlohmann::json::array({{{"id", id}, {"addresses", gpus}}});
    variables = {absl::StrCat("SPARK_WORKER_OPTS=-Dspark.worker.resource.gpu.amount=", gpus.size(),
                              " -Dspark.worker.resourcesFile=", file)};
  }
  workers_.push_back(Begin(host,
                           {kWorker, "--host", SimulatedHosts::AddressOf(host), "--cores", absl::StrCat(cores),
                            "--memory", "64g", "--work-dir", "/tmp/spark-work", "--webui-port", "8081", address()},
                           variables));
}

void SparkCluster::KillMaster() {
  EXPECT_EQ(KillProcessesOn(hosts_, kHead, kMaster), 1);
  master_->Wait();
}

void SparkCluster::StartMaster() {
  BeginMaster();
  AwaitWorkers(kWebPort, workers_.size());
}

// It remembers workers and applications, as masters do that are started again: another one has the executors killed
// that it doesn't know.
void SparkCluster::BeginMaster() {
  master_ = Begin(
      kHead,
      {kMaster, "--host", SimulatedHosts::AddressOf(kHead), "--port", "7077", "--webui-port", absl::StrCat(kWebPort)},
      {"SPARK_MASTER_OPTS=-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory=/tmp/spark-master"});
}

std::unique_ptr<Process> SparkCluster::StartMasterWithSecret(const std::string& secret) const {
  const std::string options = "-Dspark.authenticate=true -Dspark.authenticate.secret=";
  auto master = Begin(kHead,
                      {kMaster, "--host", SimulatedHosts::AddressOf(kHead), "--port", "7078", "--webui-port",
                       absl::StrCat(kWebPortWithSecret)},
                      {absl::StrCat("SPARK_MASTER_OPTS=", options, secret)});
  AwaitWorkers(kWebPortWithSecret, 0);
  return master;
}

void SparkCluster::EndMasterWithSecret(Process& master) const {
  EXPECT_EQ(KillProcessesOn(hosts_, kHead, "--port 7078"), 1);
  master.Wait();
}

void SparkCluster::AwaitWorkers(int web_port, size_t count) const {
  const std::string page = absl::StrCat("http://", SimulatedHosts::AddressOf(kHead), ":", web_port, "/json/");
  Process look(hosts_.On("h0", {python(), "-c", kCountWorkers, page, absl::StrCat(count)}));
  EXPECT_EQ(look.Wait(), 0) << look.out << look.err;
}

std::unique_ptr<Process> SparkCluster::Begin(const std::string& host, const std::vector<std::string>& words,
                                             const std::vector<std::string>& variables) const {
  const std::vector<std::string> environment =
      Joined({"env", "--unset=SPARK_HOME", "PATH=/usr/local/bin:/usr/bin:/bin", "PYSPARK_PYTHON=" + python(),
              "SPARK_DAEMON_MEMORY=256m", absl::StrCat("SPARK_DAEMON_JAVA_OPTS=", kShortLived)},
             variables);
  const std::vector<std::string> logged = {"sh",
                                           "-c",
                                           kLogged,
                                           "sh",
                                           absl::StrCat(hosts_.shared(), "/spark.", host, ".log"),
                                           FolderOfPython() + "/spark-class"};
  return std::make_unique<Process>(hosts_.On(host, Joined(Joined(environment, logged), words)));
}

std::string SparkCluster::Lines(size_t nodes) {
  return absl::StrCat("on: spark\nspark:\n  nodes: ", nodes, "\n  address: \"", address(), "\"\n  python: ", python(),
                      "\n  conf:\n    spark.ui.enabled: false\n    spark.driver.host: ",
                      SimulatedHosts::AddressOf("h0"), "\n    spark.driver.extraJavaOptions: \"", kShortLived,
                      "\"\n    spark.executor.extraJavaOptions: \"", kShortLived, "\"\n");
}

// A JVM that is killed leaves its files, which end with the hosts there.
std::vector<std::string> SparkCluster::Variables() const {
  return {Mark(), "SPARK_HOME=", absl::StrCat("SPARK_LOCAL_DIRS=", hosts_.shared(), "/spark.local"),
          absl::StrCat("SPARK_SUBMIT_OPTS=-Djava.io.tmpdir=", hosts_.shared())};
}

std::vector<pid_t> SparkCluster::OnH0(const std::string& text) const {
  std::vector<pid_t> found;
  for (const pid_t pid : ProcessesWith(Mark())) {
    const std::string words = PosixFileSystem().ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("");
    if (absl::StrContains(words, text)) found.push_back(pid);
  }
  return found;
}

int SparkCluster::KillOnH0(const std::string& text) const {
  int killed = 0;
  for (const pid_t pid : OnH0(text)) killed += kill(pid, SIGKILL) == 0 ? 1 : 0;
  return killed;
}

void SparkCluster::AwaitNothingElse() const {
  for (size_t left = 1; left > 0;) {
    Watched watched;
    for (const pid_t pid : ProcessesWith(Mark())) watched.Add(pid);
    left = watched.size();
    watched.WaitForEnds();
  }
  for (const std::string& host : hosts_.names()) AwaitNothingElseOn(host);
}

void SparkCluster::AwaitNothingElseOn(const std::string& host) const {
  for (size_t left = 1; left > 0;) {
    Watched watched;
    for (const SimulatedHosts::Running& running : hosts_.ProcessesOf(host))
      if (!IsSpark(running.words)) watched.Add(running.pid);
    left = watched.size();
    watched.WaitForEnds();
  }
  const std::string own_root = absl::StrCat("/proc/", hosts_.FirstOf(host), "/root");
  const std::string folder = absl::StrCat(own_root, "/tmp/muster-spark-", geteuid());
  const bool exists = std::filesystem::exists(folder);
  EXPECT_EQ(exists ? EntriesOf(folder) : std::vector<std::string>(), std::vector<std::string>()) << host;
}

}  // namespace muster
