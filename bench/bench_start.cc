// `bench start`: the time from the launch of a job's second worker until it has made its first step, in real processes
// that load libtorch, join, wait for the chief's model, pull it, and train one minibatch: launched together with the ps
// and the chief, into a job that is already training, and before a late chief. (TensorFlow 1's second worker takes some
// 3 s, and 30 s more if it looks for the model just before the chief is done: it looks every 30 s.) Rows on stdout are
// JSON, the table is on stderr. Exits with 1 if a case misses the goal.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/mlp.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "bench/support/whole_file.h"
#include "muster/base/monotonic.h"
#include "muster/cluster/identity/environment.h"
#include "muster/muster.h"

namespace muster::bench {
namespace {

constexpr double kGoalSeconds = 1.5;

// Seconds on a clock that all processes of the machine share.
double Now() { return static_cast<double>(MonotonicNanos()) * 1e-9; }

// When a worker reached which point, by that clock.
struct Milestones {
  double in_main = 0;     // libtorch has been loaded
  double has_server = 0;  // the module, the server and the replica have been made
  double has_model = 0;   // the session has started
  double first_step = 0;  // has been made
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Milestones, in_main, has_server, has_model, first_step)

// The program of both workers: writes the time of the first step to `file`; the chief trains on until it is killed.
int Train(const std::string& file) {
  Milestones when{.in_main = Now()};
  std::vector<std::string> no_arguments;
  const auto task = TaskConfig::FromArguments(no_arguments, ReadEnvironment());
  ThrowIfError(task.status());
  Server server(*task);
  Mlp model(MlpWork{});
  MlpData data(/*seed=*/1);
  Replica replica(server, model);
  Trainer trainer = Asynchronous(replica, Sgd({.learning_rate = kMlpLearningRate}));
  when.has_server = Now();
  MonitoredTrainingSession session(server, {.log_step_count_steps = 0});
  when.has_model = Now();
  const auto step = [&] { session.Run(trainer, [&] { return MlpLoss(model, data.Next()); }); };
  step();
  when.first_step = Now();
  WriteWhole(file, nlohmann::json(when).dump());
  while (task->is_chief() && !session.ShouldStop()) step();
  return 0;
}

enum class Order { kTogether, kJoining, kLateChief };

struct Case {
  const char* name;
  Order order;
  const char* what;
};
constexpr std::array<Case, 3> kCases = {
    Case{"together", Order::kTogether, "launched with the ps and the chief"},
    Case{"joining", Order::kJoining, "launched when the chief trains already"},
    Case{"late_chief", Order::kLateChief, "there before the chief; from the chief's launch on"},
};

// One ps, a chief and a second worker, which all end with this object.
class Job {
 public:
  explicit Job(std::string folder) : folder_(std::move(folder)), ports_(FreePorts(3)) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    StartTask("ps", 0);
  }
  ~Job() {
    for (const pid_t process : processes_) kill(process, SIGKILL);
    for (const pid_t process : processes_) WaitFor(process);
    std::filesystem::remove_all(folder_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Returns the time of the launch.
  double StartWorker(int index) { return StartTask("worker", index); }
  Milestones AwaitFirstStep(int worker) {
    const std::string file = File(worker);
    if (!AwaitFile(file, std::chrono::seconds(120))) {
      ShowEnd(Log("worker", worker));
      std::fprintf(stderr, "bench start: worker %d has made no step in 120 s\n", worker);
      std::exit(1);
    }
    std::ifstream text(file);
    return nlohmann::json::parse(text).get<Milestones>();
  }

 private:
  double StartTask(const std::string& type, int index) {
    const auto address = [&](int i) { return absl::StrCat("127.0.0.1:", ports_[i]); };
    const nlohmann::json config = {{"cluster", {{"ps", {address(0)}}, {"worker", {address(1), address(2)}}}},
                                   {"task", {{"type", type}, {"index", index}}}};
    const EnvironmentChanges environment = {{"TF_CONFIG", config.dump()}};
    const double launched = Now();
    processes_.push_back(type == "ps" ? Start({SiblingProgram("muster"), "ps"}, environment, Log(type, index))
                                      : StartSelf({"--worker", File(index)}, environment, Log(type, index)));
    return launched;
  }
  std::string File(int worker) const { return absl::StrCat(folder_, "/worker-", worker, ".json"); }
  std::string Log(const std::string& type, int index) const { return absl::StrCat(folder_, "/", type, index, ".log"); }

  const std::string folder_;
  const std::vector<int> ports_;
  std::vector<pid_t> processes_;
};

// Returns the second worker's milestones as seconds since the launch that counts.
Milestones Measure(Order order, double chief_late) {
  Job job(std::filesystem::temp_directory_path() / absl::StrCat("bench_start.", getpid()));
  double launched = 0;
  if (order == Order::kLateChief) {
    job.StartWorker(1);
    std::this_thread::sleep_for(std::chrono::duration<double>(chief_late));
    launched = job.StartWorker(0);
  } else {
    job.StartWorker(0);
    if (order == Order::kJoining) job.AwaitFirstStep(0);
    launched = job.StartWorker(1);
  }
  const Milestones when = job.AwaitFirstStep(1);
  return {when.in_main - launched, when.has_server - launched, when.has_model - launched, when.first_step - launched};
}

// Returns whether the goal is met.
bool Report(const Case& one, const std::vector<Milestones>& runs) {
  const auto of = [&](double Milestones::*milestone) {
    std::vector<double> values;
    for (const Milestones& run : runs) values.push_back(run.*milestone);
    return values;
  };
  const auto [median, least, most] = SpreadOf(of(&Milestones::first_step));
  nlohmann::json row = {{"bench", "start"}, {"what", one.name},    {"first_step_s", median}, {"least_s", least},
                        {"most_s", most},   {"runs", runs.size()}, {"goal_s", kGoalSeconds}};
  std::string parts;
  // Points before the chief's launch mean nothing if that launch counts.
  if (one.order != Order::kLateChief) {
    row["in_main_s"] = Median(of(&Milestones::in_main));
    row["has_server_s"] = Median(of(&Milestones::has_server));
    row["has_model_s"] = Median(of(&Milestones::has_model));
    parts = absl::StrFormat("; in main after %.2f, module made %.2f, model there %.2f", row["in_main_s"].get<double>(),
                            row["has_server_s"].get<double>(), row["has_model_s"].get<double>());
  }
  std::printf("%s\n", row.dump().c_str());
  const bool met = median <= kGoalSeconds;
  std::fprintf(stderr, "%-10s  first step after %.2f s (%.2f–%.2f), goal %.1f: %s\n            %s%s\n", one.name,
               median, least, most, kGoalSeconds, met ? "met" : "MISSED", one.what, parts.c_str());
  return met;
}

int Main(int argc, char** argv) {
  int runs = 7;
  double chief_late = 2;
  std::string worker;
  std::vector<std::string> names;
  CLI::App app("How long after its launch the second worker makes its first step.", "bench_start");
  app.add_option("--runs", runs, "runs of each case")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--cases", names, "together, joining, late_chief; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember({"together", "joining", "late_chief"}));
  app.add_option("--chief_late", chief_late, "seconds from the worker's launch to the late chief's")
      ->capture_default_str();
  app.add_option("--worker", worker, "(the benchmark's own: be a worker, and write this file)")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!worker.empty()) return Train(worker);
  bool met = true;
  for (const Case& one : kCases) {
    if (!names.empty() && std::find(names.begin(), names.end(), one.name) == names.end()) continue;
    std::vector<Milestones> all;
    for (int run = 0; run < runs; ++run) all.push_back(Measure(one.order, chief_late));
    met = Report(one, all) && met;
  }
  return met ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
