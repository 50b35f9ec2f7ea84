// `bench scale`: how the rate of asynchronous training grows with the number of workers on one machine. A wait replaces
// computing, so that cores aren't the limit and the ps and the network path are. Beside each rate stands the
// simulation's prediction from the costs of a step (sim/scale_prediction.h), which are measured first; for more workers
// than a machine holds there is only the prediction. Rows on stdout are JSON, the table is on stderr.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/algo/algorithms/asynchronous.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/sim/scale_prediction.h"
#include "muster/train/node/node.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Steps of a worker before its clock starts; by then all have joined.
constexpr int kWarmUpSteps = 20;
constexpr int kVariables = 64;
// This many workers without a wait keep the ps busy all the time.
constexpr int kEnough = 3;

// The goals: the efficiency of kGoalWorkers workers with the default work, and how far predictions may be off.
constexpr int kGoalWorkers = 8;
constexpr double kGoalEfficiency = 0.90;
constexpr double kGoalForetold = 0.15;

struct Options {
  std::string role;
  std::string out;
  double step_ms = 20;
  int64_t kilobytes = 1024;
  double seconds = 3;
  int rounds = 5;
  std::vector<int> workers = {1, 2, 4, 8};
  std::vector<int> ps = {1, 2, 3, 4};
  std::vector<int> predict = {16, 64, 256};
};

double CpuSeconds() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// A model whose minibatch takes time but no processor.
class WaitingSource final : public GradientSource {
 public:
  WaitingSource(int64_t kilobytes, double step_ms) : wait_(step_ms / 1e3) {
    const int64_t elements = kilobytes * 1024 / static_cast<int64_t>(sizeof(float)) / kVariables;
    for (int i = 0; i < kVariables; ++i) variables_.push_back({.name = absl::StrCat("v", i), .shape = {elements}});
    values_.assign(kVariables, std::vector<float>(elements, 1.0f));
    gradient_.assign(elements, 1e-6f);
  }
  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(values_[i].data(), values_[i].size()); }
  absl::StatusOr<double> ComputeGradients() override {
    if (wait_.count() > 0) std::this_thread::sleep_for(wait_);
    return 0.0;
  }
  ByteSpan gradient(size_t) override { return AsBytes(gradient_.data(), gradient_.size()); }

 private:
  const std::chrono::duration<double> wait_;
  std::vector<VariableSpec> variables_;
  std::vector<std::vector<float>> values_;
  std::vector<float> gradient_;
};

// Runs a worker process: steps for options.seconds, then writes its rate and the processor time of a step.
absl::Status Work(const TaskConfig& task, const Options& options) {
  ASSIGN_OR_RETURN(const auto node,
                   Node::Create(task, {.apply = ApplyChoice::kServer, .transport = TransportChoice::kTcp}));
  WaitingSource source(options.kilobytes, options.step_ms);
  ASSIGN_OR_RETURN(PlacementResult placement,
                   PlaceVariables(source.variables(), node->num_ps(), Placement::kRoundRobin, {}));
  AsynchronousAlgorithm algorithm(source, std::move(placement), RuleSpec{.learning_rate = 1e-6});
  node->SetAlgorithm(&algorithm);
  ASSIGN_OR_RETURN(SessionEnvironment environment, node->MakeSessionEnvironment());
  Session session(std::move(environment), {.log_step_count_steps = 0}, {});
  RETURN_IF_ERROR(session.Start());
  for (int i = 0; i < kWarmUpSteps; ++i) RETURN_IF_ERROR(session.Run());
  const auto start = Clock::now();
  const double cpu = CpuSeconds();
  int64_t steps = 0;
  for (; SecondsSince(start) < options.seconds; ++steps) RETURN_IF_ERROR(session.Run());
  std::ofstream(options.out) << static_cast<double>(steps) / SecondsSince(start) << " "
                             << (CpuSeconds() - cpu) / static_cast<double>(steps) << " " << steps << "\n";
  return session.Close();
}

// Returns how many seconds the wait of a minibatch really takes if nothing else happens.
double MeasureWait(const Options& options) {
  WaitingSource source(1024, options.step_ms);
  const auto start = Clock::now();
  int64_t steps = 0;
  for (; SecondsSince(start) < options.seconds; ++steps) source.ComputeGradients().IgnoreError();
  return SecondsSince(start) / static_cast<double>(steps);
}

struct Sample {
  double rate = 0;        // steps per second of all workers; 0: something failed
  double worker_cpu = 0;  // seconds per step
  double ps_cpu = 0;      // seconds per step, of all ps

  // How many cores all workers use together, and how many the ps.
  double worker_cores() const { return rate * worker_cpu; }
  double ps_cores() const { return rate * ps_cpu; }
};

// Returns the sample with the median rate; `samples` must not be empty.
Sample MiddleOf(std::vector<Sample> samples) {
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.rate < b.rate; });
  return samples[samples.size() / 2];
}

Sample MeasureCluster(const Options& options, const std::string& folder, int workers, int num_ps, double step_ms,
                      double seconds) {
  nlohmann::json cluster;
  const std::vector<int> ports = FreePorts(num_ps + workers);
  for (int i = 0; i < num_ps + workers; ++i)
    cluster[i < num_ps ? "ps" : "worker"].push_back(absl::StrCat("127.0.0.1:", ports[i]));
  const auto tf_config = [&](const char* type, int index) {
    return nlohmann::json{{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}}.dump();
  };
  std::vector<pid_t> servers, children;
  for (int i = 0; i < num_ps; ++i)
    servers.push_back(
        Start({SiblingProgram("muster"), "ps"}, {{"TF_CONFIG", tf_config("ps", i)}}, absl::StrCat(folder, "/ps", i)));
  const auto out = [&](int i) { return absl::StrCat(folder, "/worker", i); };
  for (int i = 0; i < workers; ++i)
    children.push_back(StartSelf({"--role", "worker", "--out", out(i), "--step_ms", absl::StrCat(step_ms), "--seconds",
                                  absl::StrCat(seconds), "--kilobytes", absl::StrCat(options.kilobytes)},
                                 {{"TF_CONFIG", tf_config("worker", i)}}, out(i) + ".log"));
  Sample sample;
  bool good = true;
  double steps = 0;
  for (int i = 0; i < workers; ++i) {
    if (WaitFor(children[i]) != 0) {
      good = false;
      ShowEnd(out(i) + ".log");
      continue;
    }
    double rate = 0, cpu = 0, own_steps = 0;
    std::ifstream(out(i)) >> rate >> cpu >> own_steps;
    sample.rate += rate;
    sample.worker_cpu += cpu / workers;
    steps += own_steps + kWarmUpSteps;
  }
  for (const pid_t server : servers) {
    if (!good) kill(server, SIGTERM);  // otherwise it would wait for workers that left without a message
    double cpu = 0;
    good = WaitFor(server, &cpu) == 0 && good;
    sample.ps_cpu += cpu / steps;
  }
  return good ? sample : Sample();
}

// One case, measured in turns with the others.
struct Line {
  int workers = 0;
  int ps = 0;
  std::vector<Sample> samples;  // one per round
};

// Adds the measurements to the row of the table and to `row`. `most` is the rate of as many workers that need no ps.
void AddMeasured(const Options& options, const Line& line, double most, double foretold, nlohmann::ordered_json& row) {
  const Sample middle = MiddleOf(line.samples);
  const auto [least, greatest] = std::minmax_element(line.samples.begin(), line.samples.end(),
                                                     [](const Sample& a, const Sample& b) { return a.rate < b.rate; });
  const double efficiency = middle.rate / most, off = foretold / middle.rate - 1;
  row["steps_per_s"] = middle.rate;
  row["least"] = least->rate;
  row["most"] = greatest->rate;
  row["efficiency"] = efficiency;
  row["foretold_off"] = off;
  row["worker_cores"] = middle.worker_cores();
  row["ps_cores"] = middle.ps_cores();
  row["foretold_met"] = std::abs(off) <= kGoalForetold;
  std::string verdict = std::abs(off) <= kGoalForetold ? "" : "  NOT MET: foretold within 15 %";
  if (line.workers == kGoalWorkers && options.step_ms == Options().step_ms &&
      options.kilobytes == Options().kilobytes) {
    row["efficiency_met"] = efficiency >= kGoalEfficiency;
    verdict += absl::StrFormat("  %s: %.2f", efficiency >= kGoalEfficiency ? "met" : "NOT MET", kGoalEfficiency);
  }
  std::fprintf(stderr, "%8d %4d %10.0f %8.0f %8.0f %11.3f %10.0f %+5.0f%% %14.2f %9.2f%s\n", line.workers, line.ps,
               middle.rate, least->rate, greatest->rate, efficiency, foretold, 100 * off, middle.worker_cores(),
               middle.ps_cores(), verdict.c_str());
}

class ScaleBench {
 public:
  ScaleBench(const Options& options, std::string folder) : options_(options), folder_(std::move(folder)) {}

  int Run() {
    if (!MeasureCosts()) return 1;
    std::vector<Line> lines;
    for (const int ps : options_.ps)
      for (const int workers : options_.workers) lines.push_back({.workers = workers, .ps = ps});
    for (int round = 0; round < options_.rounds; ++round) {
      for (const size_t i : Turns(lines.size(), round)) {
        Line& line = lines[i];
        if (isatty(STDERR_FILENO) != 0)
          std::fprintf(stderr, "\rround %d of %d: %d workers, %d ps ", round + 1, options_.rounds, line.workers,
                       line.ps);
        line.samples.push_back(
            MeasureCluster(options_, folder_, line.workers, line.ps, options_.step_ms, options_.seconds));
      }
    }
    std::fprintf(stderr, "\n%8s %4s %10s %8s %8s %11s %10s %6s %14s %9s\n", "workers", "ps", "steps/s", "least", "most",
                 "efficiency", "foretold", "off", "worker cores", "ps cores");
    bool good = true;
    for (const Line& line : lines) good = Report(line) && good;
    for (const int ps : options_.ps)
      for (const int workers : options_.predict) good = Report({.workers = workers, .ps = ps}) && good;
    return good ? 0 : 1;
  }

 private:
  // Returns the run with the median rate of three.
  Sample MedianOf(int workers, int num_ps, double step_ms) const {
    std::vector<Sample> samples;
    for (int i = 0; i < 3; ++i)
      samples.push_back(MeasureCluster(options_, folder_, workers, num_ps, step_ms, options_.seconds));
    return MiddleOf(samples);
  }

  // Uses runs that keep the ps busy, with one and with most ps: there all processor time is spent on steps. What a step
  // of a single worker takes beyond all that is the round trip.
  bool MeasureCosts() {
    const int most = *std::max_element(options_.ps.begin(), options_.ps.end());
    const Sample one = MedianOf(kEnough, 1, 0);
    const Sample many = most > 1 ? MedianOf(kEnough, most, 0) : one;
    const Sample calm = MedianOf(1, 1, options_.step_ms);
    const Sample calm_many = most > 1 ? MedianOf(1, most, options_.step_ms) : calm;
    if (one.rate == 0 || many.rate == 0 || calm.rate == 0 || calm_many.rate == 0) return false;
    const double wait = MeasureWait(options_);
    const double ways = std::max(0.0, 1 / calm.rate - wait - one.worker_cpu - one.ps_cpu);
    // With several ps, each takes one request of a step, and ps 0 a second one, which counts.
    const double request = most > 1 ? std::max(0.0, (many.ps_cpu - one.ps_cpu) / most) : 0;
    const double model = std::max(0.0, one.ps_cpu - request);
    // A single worker waits for a share of the model and then for ps 0 to count; the rest is the cost of further ps.
    const double known = wait + one.worker_cpu + model / most + 2 * (request + ways);
    const double further = most > 1 ? std::max(0.0, (1 / calm_many.rate - known) / (most - 1)) : 0;
    costs_ = {.compute = absl::Seconds(wait),
              .client = absl::Seconds(one.worker_cpu),
              .client_ps = absl::Seconds(further),
              .ps_request = absl::Seconds(request),
              .ps_model = absl::Seconds(model),
              .one_way = absl::Seconds(ways / 2)};
    std::fprintf(
        stderr,
        "a step of %g ms and %d KB costs: worker %.0f us (%.0f more each further ps), ps %.0f us a request and "
        "%.0f a model, one way %.0f us\n",
        options_.step_ms, static_cast<int>(options_.kilobytes), one.worker_cpu * 1e6, further * 1e6, request * 1e6,
        model * 1e6, ways / 2 * 1e6);
    return true;
  }

  // For a line that wasn't measured, reports only the prediction.
  bool Report(const Line& line) const {
    const absl::StatusOr<double> foretold = PredictStepsPerSecond(line.workers, line.ps, costs_);
    if (!foretold.ok()) {
      std::fprintf(stderr, "bench scale: %s\n", std::string(foretold.status().message()).c_str());
      return false;
    }
    const double most = line.workers / absl::ToDoubleSeconds(costs_.compute);
    nlohmann::ordered_json row = {{"bench", "scale"},
                                  {"workers", line.workers},
                                  {"ps", line.ps},
                                  {"step_ms", options_.step_ms},
                                  {"kilobytes", options_.kilobytes},
                                  {"foretold_steps_per_s", *foretold},
                                  {"foretold_efficiency", *foretold / most}};
    const bool measured = !line.samples.empty();
    if (measured) {
      AddMeasured(options_, line, most, *foretold, row);
    } else {
      std::fprintf(stderr, "%8d %4d %10s %8s %8s %11.3f %10.0f   (foretold)\n", line.workers, line.ps, "", "", "",
                   *foretold / most, *foretold);
    }
    std::printf("%s\n", row.dump().c_str());
    return !measured || row.at("least").get<double>() > 0;
  }

  const Options& options_;
  const std::string folder_;
  StepCosts costs_;
};

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  CLI::App app("How the rate of training grows with the workers and ps.", "bench_scale");
  app.add_option("--workers", options.workers, "numbers of workers to measure")->delimiter(',')->capture_default_str();
  app.add_option("--ps", options.ps, "numbers of ps")->delimiter(',')->capture_default_str();
  app.add_option("--predict", options.predict, "numbers of workers to predict only")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--step_ms", options.step_ms, "how long a minibatch waits instead of computing")
      ->capture_default_str();
  app.add_option("--kilobytes", options.kilobytes, "size of the parameters")->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of each measurement")->capture_default_str();
  app.add_option("--rounds", options.rounds, "number of interleaved rounds; medians are over them")
      ->capture_default_str();
  app.add_option("--role", options.role, "role of a process that this program starts")->group("");
  app.add_option("--out", options.out, "file for that process's measurements")->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.role == "worker") {
    muster::SetUpLog(task.task().ToString());
    const absl::Status status = muster::bench::Work(task, options);
    if (!status.ok()) std::fprintf(stderr, "bench_scale: %s\n", std::string(status.message()).c_str());
    return status.ok() ? 0 : 1;
  }
  muster::SetUpLog("", "off");  // the simulation runs the real code, which logs much
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-scale-", getpid());
  std::filesystem::create_directories(folder);
  const int code = muster::bench::ScaleBench(options, folder).Run();
  std::filesystem::remove_all(folder);
  return code;
}
