#include "bench/steps/steps_measurement.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/steps/steps_process.h"
#include "bench/support/rounds.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::bench {
namespace {

CpuTime CpuTimeFrom(const nlohmann::json& json) {
  return {.user = json.at("user").get<double>(), .system = json.at("system").get<double>()};
}

StepsSample ReadResults(const StepsWay& way, const std::string& folder) {
  StepsSample sample;
  for (int i = 0; i < way.workers; ++i) {
    std::ifstream file(absl::StrCat(folder, "/result.", i, ".json"));
    const nlohmann::json result = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (result.is_discarded()) return {};
    sample.workers.push_back({.steps = result.at("steps").get<double>(),
                              .seconds = result.at("seconds").get<double>(),
                              .begin = result.at("begin_ns").get<int64_t>(),
                              .cpu = CpuTimeFrom(result.at("cpu"))});
    if (i == 0) sample.ps_cpu = CpuTimeFrom(result.at("ps_cpu"));
  }
  return sample;
}

// The TF_CONFIG of each task of a cluster on free ports.
class Cluster {
 public:
  explicit Cluster(const StepsWay& way) {
    const std::vector<int> ports = FreePorts(way.workers + 1);
    if (way.has_ps()) cluster_["ps"] = {absl::StrCat("127.0.0.1:", ports[way.workers])};
    for (int i = 0; i < way.workers; ++i) cluster_["worker"].push_back(absl::StrCat("127.0.0.1:", ports[i]));
  }
  std::string TfConfig(const char* job, int index) const {
    return nlohmann::json{{"cluster", cluster_}, {"task", {{"type", job}, {"index", index}}}}.dump();
  }

 private:
  nlohmann::json cluster_;
};

}  // namespace

double StepsSample::rate() const {
  double rate = 0;
  for (const MeasuredWorker& worker : workers) rate += worker.steps / worker.seconds;
  return rate;
}

StepsSample MeasureSteps(const StepsWay& way, const StepsSettings& settings, const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Cluster cluster(way);
  EnvironmentChanges common = {{"MUSTER_MKL_AMD", way.amd ? "1" : "0"}};
  if (way.traced) common.emplace_back("MUSTER_TRACE", folder + "/trace");
  std::vector<pid_t> children;
  std::vector<std::string> logs;
  const auto environment_of = [&](const char* job, int index) {
    EnvironmentChanges environment = common;
    if (way.is_cluster()) environment.emplace_back("TF_CONFIG", cluster.TfConfig(job, index));
    return environment;
  };
  StepsProcess process = {.way = way, .settings = settings, .folder = folder};
  if (way.has_ps()) {
    logs.push_back(folder + "/ps.log");
    children.push_back(Start({SiblingProgram("muster"), "ps"}, environment_of("ps", 0), logs.back()));
    process.ps = children.back();
  }
  for (process.task = 0; process.task < way.workers; ++process.task) {
    logs.push_back(absl::StrCat(folder, "/worker", process.task, ".log"));
    children.push_back(
        StartSelf({"--process", nlohmann::json(process).dump()}, environment_of("worker", process.task), logs.back()));
  }
  const int failed = WaitForAll(children);
  if (failed < 0) return ReadResults(way, folder);
  std::fprintf(stderr, "FAILED: %s, %d workers: %s\n", NameOf(way).c_str(), way.workers, logs[failed].c_str());
  ShowEnd(logs[failed]);
  return {};
}

std::string TracePart(const StepsWay& way, const std::string& folder, const std::string& job, int index) {
  return way.is_cluster() ? TracePartOf(folder + "/trace", {job, index}) : folder + "/trace";
}

double MinutesFor(size_t measurements, const StepsSettings& settings) {
  constexpr double kStart = 1;  // seconds
  return static_cast<double>(measurements) * (settings.seconds + kStart) / 60;
}

std::vector<StepsLine> MeasureInTurns(const std::vector<StepsWay>& ways, int rounds, const StepsSettings& settings,
                                      const std::string& folder) {
  std::vector<StepsLine> lines;
  for (const StepsWay& way : ways) lines.push_back({way, {}});
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    size_t place = 0;
    for (const size_t i : Turns(ways.size(), round)) {
      if (isatty(STDERR_FILENO) != 0)
        std::fprintf(stderr, "\r\033[Kround %d of %d, %zu of %zu: %s, %d workers", round + 1, rounds, ++place,
                     ways.size(), NameOf(ways[i]).c_str(), ways[i].workers);
      lines[i].rates.push_back(MeasureSteps(ways[i], settings, folder).rate());
    }
    std::fprintf(stderr, "%s%s %s: round %d of %d after %.0f s\n", isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "",
                 ways[0].model.c_str(), ways[0].rule.c_str(), round + 1, rounds, SecondsSince(start));
  }
  return lines;
}

}  // namespace muster::bench
