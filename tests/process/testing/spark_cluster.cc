#include "tests/process/testing/spark_cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

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

count, until = -1, time.monotonic() + 120
while count != int(sys.argv[2]) and time.monotonic() < until:
    try:
        count = json.loads(urllib.request.urlopen(sys.argv[1], timeout=5).read())["aliveworkers"]
    except (OSError, ValueError, KeyError):
        pass
    time.sleep(0.1)
sys.exit(0 if count == int(sys.argv[2]) else f"{count} workers of Spark live, not {sys.argv[2]}")
)";

std::string FolderOfPython() { return SourceFolder() + "/.venv/bin"; }

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

SparkCluster::SparkCluster(const SimulatedHosts& hosts, const std::vector<int>& cores) : hosts_(hosts) {
  const std::string head = SimulatedHosts::AddressOf("h1");
  Begin("h1", {kMaster, "--host", head, "--port", "7077", "--webui-port", "8080"});
  for (size_t i = 0; i < cores.size(); ++i) {
    const std::string& host = hosts_.names()[i];
    Begin(host, {kWorker, "--host", SimulatedHosts::AddressOf(host), "--cores", absl::StrCat(cores[i]), "--memory",
                 "64g", "--work-dir", "/tmp/spark-work", "--webui-port", "8081", address()});
  }
  Process look(hosts_.On(
      "h0", {python(), "-c", kCountWorkers, absl::StrCat("http://", head, ":8080/json/"), absl::StrCat(cores.size())}));
  EXPECT_EQ(look.Wait(), 0) << look.out << look.err;
}

SparkCluster::~SparkCluster() = default;

void SparkCluster::Begin(const std::string& host, const std::vector<std::string>& words) {
  programs_.push_back(std::make_unique<Process>(hosts_.On(
      host,
      Joined({"env", "--unset=SPARK_HOME", "PATH=/usr/local/bin:/usr/bin:/bin", "PYSPARK_PYTHON=" + python(),
              "SPARK_DAEMON_MEMORY=256m", absl::StrCat("SPARK_DAEMON_JAVA_OPTS=", kShortLived), "sh", "-c", kLogged,
              "sh", absl::StrCat(hosts_.shared(), "/spark.", host, ".log"), FolderOfPython() + "/spark-class"},
             words))));
}

std::string SparkCluster::Lines(size_t nodes) {
  return absl::StrCat("on: spark\nspark:\n  nodes: ", nodes, "\n  address: \"", address(), "\"\n  python: ", python(),
                      "\n  conf:\n    spark.ui.enabled: false\n    spark.driver.host: ",
                      SimulatedHosts::AddressOf("h0"), "\n    spark.driver.extraJavaOptions: \"", kShortLived,
                      "\"\n    spark.executor.extraJavaOptions: \"", kShortLived, "\"\n");
}

std::vector<std::string> SparkCluster::Variables() const {
  return {Mark(), "SPARK_HOME=", absl::StrCat("SPARK_LOCAL_DIRS=", hosts_.shared(), "/spark.local")};
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
