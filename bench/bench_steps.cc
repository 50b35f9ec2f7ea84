// `bench steps`: minibatches a second of asynchronous training through a parameter server, beside the fastest plain
// loop of one process, measured in turns in one run. Rows on stdout are JSON, the table is on stderr.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/local_loop.h"
#include "bench/median.h"
#include "bench/mlp.h"
#include "bench/process.h"
#include "muster/muster.h"

namespace muster::bench {
namespace {

// Steps of a worker before its clock starts: allocator and caches are warm then, and all workers have joined.
constexpr int kWarmUpSteps = 50;

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

// A worker process: trains for `seconds`, writes its rate to `out`.
int Work(const TaskConfig& task, double seconds, const std::string& out) {
  at::set_num_threads(1);
  MlpData data(1 + task.global_id());
  Mlp model;
  Server server(task);
  Replica replica(server, model);
  auto trainer = Asynchronous(replica, Sgd({.learning_rate = kMlpLearningRate}));
  MonitoredTrainingSession session(server, {.log_step_count_steps = 0});
  const auto step = [&] { session.Run(trainer, [&] { return MlpLoss(model, data.Next()); }); };
  for (int i = 0; i < kWarmUpSteps; ++i) step();
  int64_t steps = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; Seconds(start) < seconds; ++steps) step();
  std::ofstream(out) << steps / Seconds(start) << "\n";
  return 0;
}

// The reference, in a process of its own like every other.
int WorkAlone(double seconds, const std::string& out) {
  std::ofstream(out) << MeasureLocalStepsPerSecond(seconds) << "\n";
  return 0;
}

double ReadRate(const std::string& path) {
  double rate = 0;
  std::ifstream(path) >> rate;
  return rate;
}

struct Options {
  std::string role;
  std::string out;
  double seconds = 2;
  int rounds = 5;
};

// The processor switch of torch_bridge/mkl_amd, for the processes that train.
EnvironmentChanges AmdSwitch(bool on) { return {{"MUSTER_MKL_AMD", on ? "1" : "0"}}; }

double MeasureAlone(const Options& options, const std::string& folder, bool amd) {
  const std::string out = folder + "/local";
  const pid_t child = StartSelf({"--role", "local", "--out", out, "--seconds", absl::StrCat(options.seconds)},
                                AmdSwitch(amd), out + ".log");
  if (WaitFor(child) == 0) return ReadRate(out);
  ShowEnd(out + ".log");
  return 0;
}

// One ps and `workers` workers (the first is the chief); the sum of their rates.
double MeasureCluster(const Options& options, const std::string& folder, bool amd, int workers) {
  nlohmann::json cluster = {{"ps", {absl::StrCat("127.0.0.1:", FreePort())}}};
  for (int i = 0; i < workers; ++i) cluster["worker"].push_back(absl::StrCat("127.0.0.1:", FreePort()));
  const auto tf_config = [&](const char* type, int index) {
    return nlohmann::json{{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}}.dump();
  };
  const pid_t ps = Start({SiblingProgram("muster"), "ps"}, {{"TF_CONFIG", tf_config("ps", 0)}}, folder + "/ps.log");
  std::vector<pid_t> children;
  std::vector<std::string> outs;
  for (int i = 0; i < workers; ++i) {
    outs.push_back(absl::StrCat(folder, "/worker", i));
    EnvironmentChanges environment = AmdSwitch(amd);
    environment.emplace_back("TF_CONFIG", tf_config("worker", i));
    children.push_back(StartSelf({"--role", "worker", "--out", outs.back(), "--seconds", absl::StrCat(options.seconds)},
                                 environment, outs.back() + ".log"));
  }
  bool good = true;
  for (size_t i = 0; i < children.size(); ++i) {
    if (WaitFor(children[i]) == 0) continue;
    good = false;
    ShowEnd(outs[i] + ".log");
  }
  if (!good) kill(ps, SIGTERM);  // it would wait for those who left without a word
  good = WaitFor(ps) == 0 && good;
  double rate = 0;
  for (const std::string& out : outs) rate += ReadRate(out);
  return good ? rate : 0;
}

// Local, one worker and two workers in turns, with the switch on or off; one row for each number of workers.
bool ReportWith(const Options& options, const std::string& folder, bool amd) {
  std::vector<double> alone, one, two;
  for (int round = 0; round < options.rounds; ++round) {
    alone.push_back(MeasureAlone(options, folder, amd));
    one.push_back(MeasureCluster(options, folder, amd, 1));
    two.push_back(MeasureCluster(options, folder, amd, 2));
    std::fprintf(stderr, "AMD switch %s, round %d of %d: local %.0f, 1 worker %.0f, 2 workers %.0f steps/s\n",
                 amd ? "on" : "off", round + 1, options.rounds, alone.back(), one.back(), two.back());
  }
  const double local = Median(alone);
  std::fprintf(stderr, "%-8s %10s %8s %12s %12s %7s\n", "model", "AMD switch", "workers", "steps/s", "local", "ratio");
  for (const auto& [workers, rates] : {std::pair(1, one), std::pair(2, two)}) {
    const double rate = Median(rates);
    const nlohmann::ordered_json row = {{"bench", "steps"},     {"model", kMlpName},   {"mode", "async"},
                                        {"apply", "server"},    {"transport", "tcp"},  {"amd_switch", amd},
                                        {"workers", workers},   {"steps_per_s", rate}, {"local_steps_per_s", local},
                                        {"ratio", rate / local}};
    std::printf("%s\n", row.dump().c_str());
    std::fprintf(stderr, "%-8s %10s %8d %12.0f %12.0f %7.2f\n", kMlpName, amd ? "on" : "off", workers, rate, local,
                 rate / local);
  }
  return local > 0 && Median(one) > 0 && Median(two) > 0;
}

int Report(const Options& options) {
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-steps-", getpid());
  std::filesystem::create_directories(folder);
  const bool on = ReportWith(options, folder, true);
  const bool off = ReportWith(options, folder, false);
  std::filesystem::remove_all(folder);
  return on && off ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  CLI::App app("Steps a second through a parameter server beside one plain process.", "bench_steps");
  app.add_option("--seconds", options.seconds, "of each measurement")->capture_default_str();
  app.add_option("--rounds", options.rounds, "medians are over so many interleaved rounds")->capture_default_str();
  app.add_option("--role", options.role, "of a process that this program starts itself")->group("");
  app.add_option("--out", options.out, "where such a process writes its rate")->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.role == "worker") return muster::bench::Work(task, options.seconds, options.out);
  if (options.role == "local") return muster::bench::WorkAlone(options.seconds, options.out);
  return muster::bench::Report(options);
}
