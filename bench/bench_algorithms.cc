// `bench algorithms`: measures every algorithm of `muster algorithms` with its default parameters: minibatches per
// second with one and two workers beside plain processes, in turns in one run; the bytes that it sends per minibatch;
// and what a step costs beside computing and the store. Rows on stdout are JSON, tables are on stderr.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/steps/steps_lines.h"
#include "bench/steps/steps_measurement.h"
#include "bench/steps/steps_process.h"
#include "bench/support/goal.h"
#include "bench/support/pipeline_cost.h"
#include "bench/support/processor.h"
#include "bench/support/rounds.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/log.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::bench {
namespace {

constexpr double kGoalMicroseconds = 10;  // for a step, beside computing and the store

constexpr char kFooter[] = R"(
The work is a perceptron 784-100-10 with minibatches of 100 (318 KB of parameters); each algorithm has its default
parameters (`muster algorithms NAME`).

First table, in one process: one worker and one ps on one thread, with gradients already computed. "sent" and
"received": bytes per minibatch in the worker's messages, as its channel counts them, when the ps applies updates.
"own": the time of a step less computing (nothing here), less the store client's time from handing over a push until it
has the answer, less the worker's own update rule, by the spans of the worker's track; what the client does before the
hand-over counts as the algorithm's own. Mean of the steps, median of the rounds. "few": the same with 10 parameters,
which leaves out passes over the values. All-reduce has no ps, and one-step-stale training has a thread: for these there
is no "own".

Second table, with processes, in turns, every other round backwards: one plain process ("local"), two at once, and each
algorithm with 1 and 2 workers and a ps on this host, updates applied in the default way. "/ local", "/ two": the median
of the rounds' ratios to one plain process, to two at once.

The goal comes last: "own" is at most 10 us per step, for the median algorithm and for the worst.

Examples:
  ./dev bench algorithms                                  everything, about seven minutes
  ./dev bench algorithms --no_speed                       the first table alone, half a minute
  ./dev bench algorithms --algorithms downpour,easgd --rounds 3
)";

struct Options {
  std::vector<std::string> algorithms;  // empty: all
  int workers = 2;
  int rounds = 5;
  int64_t cost_steps = 2000;
  bool speed = true;
  StepsSettings settings;
};

absl::StatusOr<AlgorithmPlan> PlanOf(const AlgorithmInfo& algorithm, int workers) {
  return PlanAlgorithm({.name = std::string(algorithm.name)},
                       {.workers = static_cast<uint32_t>(workers), .num_ps = algorithm.needs_ps ? 1 : 0});
}

std::vector<const AlgorithmInfo*> Chosen(const Options& options) {
  std::vector<const AlgorithmInfo*> chosen;
  for (const AlgorithmInfo& algorithm : AlgorithmTable())
    if (options.algorithms.empty() || std::find(options.algorithms.begin(), options.algorithms.end(),
                                                std::string(algorithm.name)) != options.algorithms.end())
      chosen.push_back(&algorithm);
  return chosen;
}

// The costs of one algorithm, by round.
struct CostLine {
  std::string name;
  bool told_apart = false;  // its own cost can be measured
  std::vector<double> own, own_few;
  double bytes_sent = 0, bytes_received = 0;
  bool failed = false;
};

std::vector<VariableSpec> TheWork() {
  return {{.name = "hidden0.weight", .shape = {100, 784}},
          {.name = "hidden0.bias", .shape = {100}},
          {.name = "output.weight", .shape = {10, 100}},
          {.name = "output.bias", .shape = {10}}};
}

void MeasureCost(const AlgorithmPlan& plan, int64_t steps, CostLine& line) {
  const auto cost = MeasurePipelineCost(plan, TheWork(), steps);
  const auto few = MeasurePipelineCost(plan, {{.name = "w", .shape = {10}}}, steps);
  if (!cost.ok() || !few.ok()) {
    line.failed = true;
    std::fprintf(stderr, "FAILED: %s: %s\n", line.name.c_str(),
                 (cost.ok() ? few.status() : cost.status()).ToString().c_str());
    return;
  }
  line.own.push_back(cost->own_microseconds);
  line.own_few.push_back(few->own_microseconds);
  line.bytes_sent = cost->bytes_sent;
  line.bytes_received = cost->bytes_received;
}

void PrintCost(const CostLine& line) {
  nlohmann::ordered_json row = {{"bench", "algorithms"}, {"algorithm", line.name}};
  if (line.failed) {
    row["failed"] = true;
    std::fprintf(stderr, "%-28s  FAILED\n", line.name.c_str());
  } else {
    row["bytes_sent"] = line.bytes_sent;
    row["bytes_received"] = line.bytes_received;
    std::fprintf(stderr, "%-28s %10.0f %10.0f", line.name.c_str(), line.bytes_sent, line.bytes_received);
    if (line.told_apart) {
      const auto [own, least, most] = SpreadOf(line.own);
      row["own_us"] = own;
      row["least"] = least;
      row["most"] = most;
      row["own_us_few_values"] = Median(line.own_few);
      std::fprintf(stderr, " %8.2f %8.2f %8.2f %8.2f", own, least, most, Median(line.own_few));
    }
    std::fprintf(stderr, "\n");
  }
  std::printf("%s\n", row.dump().c_str());
}

// Measures in turns, every other round backwards. Algorithms without a ps have no line.
std::vector<CostLine> MeasureCosts(const Options& options) {
  std::vector<CostLine> lines;
  std::vector<AlgorithmPlan> plans;
  for (const AlgorithmInfo* algorithm : Chosen(options)) {
    if (!algorithm->needs_ps) continue;
    auto plan = PlanOf(*algorithm, 1);
    lines.push_back({.name = std::string(algorithm->name), .failed = !plan.ok()});
    if (!plan.ok()) std::fprintf(stderr, "FAILED: %s\n", plan.status().ToString().c_str());
    plans.push_back(plan.ok() ? *std::move(plan) : AlgorithmPlan());
    lines.back().told_apart = plans.back().way == AlgorithmWay::kPipeline;
  }
  for (int round = 0; round < options.rounds; ++round)
    for (const size_t i : Turns(lines.size(), round))
      if (!lines[i].failed) MeasureCost(plans[i], options.cost_steps, lines[i]);
  std::fprintf(stderr, "%-28s %10s %10s %8s %8s %8s %8s\n", "algorithm", "sent", "received", "own us", "least", "most",
               "few");
  for (const CostLine& line : lines) PrintCost(line);
  return lines;
}

// True if no worker goes on without the others.
bool Together(const AlgorithmInfo& algorithm, int workers) {
  const auto plan = PlanOf(algorithm, workers);
  if (!plan.ok() || workers == 1) return false;
  return plan->commit.gate.kind == GateKind::kSynchronous || plan->commit.staleness_bound.has_value();
}

std::vector<StepsWay> Ways(const Options& options) {
  std::vector<StepsWay> ways;
  for (int workers = 1; workers <= options.workers; ++workers) ways.push_back({.workers = workers});
  for (const AlgorithmInfo* algorithm : Chosen(options)) {
    // Without ps, one worker would be a plain process.
    for (int workers = algorithm->needs_ps ? 1 : 2; workers <= options.workers; ++workers)
      ways.push_back({.mode = std::string(algorithm->name),
                      .workers = workers,
                      .apply = algorithm->needs_ps ? "auto" : "-",
                      .by_name = true,
                      .together = Together(*algorithm, workers)});
  }
  return ways;
}

void PrintSpeed(const std::vector<StepsLine>& lines, const StepsLine& line) {
  nlohmann::ordered_json row = {{"bench", "algorithms"},       {"algorithm", line.way.mode},
                                {"workers", line.way.workers}, {"steps_per_s", line.median()},
                                {"least", line.least()},       {"most", line.most()}};
  std::vector<std::string> ratios;
  for (const Against against : {Against::kLocal, Against::kTwoLocals}) {
    const bool fits = against == Against::kLocal || line.way.workers == 2;
    const std::optional<double> ratio = fits ? RatioOf(lines, line.way, against) : std::nullopt;
    if (ratio) row[absl::StrCat("ratio_to_", NameOf(against))] = *ratio;
    ratios.push_back(ratio ? absl::StrFormat("%.3f", *ratio) : "");
  }
  if (line.failed()) row["failed"] = true;
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "%-28s %7d %9.0f %9.0f %9.0f %8s %8s%s\n", line.way.mode.c_str(), line.way.workers,
               line.median(), line.least(), line.most(), ratios[0].c_str(), ratios[1].c_str(),
               line.failed() ? "  FAILED" : "");
}

// Returns whether none failed.
bool MeasureSpeed(const Options& options, const std::string& folder) {
  const std::vector<StepsWay> ways = Ways(options);
  const size_t measurements = ways.size() * static_cast<size_t>(options.rounds);
  std::fprintf(stderr, "\n%zu measurements, about %.0f minutes\n", measurements,
               MinutesFor(measurements, options.settings));
  const std::vector<StepsLine> lines = MeasureInTurns(ways, options.rounds, options.settings, folder);
  std::fprintf(stderr, "%-28s %7s %9s %9s %9s %8s %8s\n", "algorithm", "workers", "steps/s", "least", "most", "/ local",
               "/ two");
  for (const StepsLine& line : lines) PrintSpeed(lines, line);
  return std::none_of(lines.begin(), lines.end(), [](const StepsLine& line) { return line.failed(); });
}

void PrintGoals(const std::vector<CostLine>& lines) {
  std::vector<double> own;
  std::string worst;
  for (const CostLine& line : lines) {
    if (!line.told_apart || line.failed) continue;
    own.push_back(Median(line.own));
    if (own.back() >= SpreadOf(own).most) worst = absl::StrCat(", ", line.name);
  }
  std::fprintf(stderr, "\ngoals, of what a step costs beside computing and the store:\n");
  const auto print = [&own](const std::string& what, double reached) {
    PrintGoal({.bench = "algorithms", .what = what, .bound = kGoalMicroseconds, .at_most = true, .unit = " us"},
              own.empty() ? std::nullopt : std::optional(reached), "not among what was asked for, or it failed");
  };
  print("the middle of the algorithms", SpreadOf(own).median);
  print("the worst" + worst, SpreadOf(own).most);
}

int MeasureAll(const Options& options, const std::string& folder) {
  const Processor processor = ThisProcessor();
  std::fprintf(stderr, "%s, %d cores\n", processor.name.c_str(), processor.cores);
  const std::vector<CostLine> costs = MeasureCosts(options);
  const bool all_fast = !options.speed || MeasureSpeed(options, folder);
  PrintGoals(costs);
  std::fflush(stdout);
  return all_fast && std::none_of(costs.begin(), costs.end(), [](const CostLine& line) { return line.failed; }) ? 0 : 1;
}

void AddOptions(CLI::App& app, Options& options) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& algorithm : AlgorithmTable()) names.emplace_back(algorithm.name);
  app.add_option("--algorithms", options.algorithms, "names; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--workers", options.workers, "most workers in the second table")
      ->capture_default_str()
      ->check(CLI::Range(1, 2));
  app.add_option("--rounds", options.rounds, "number of rounds; medians are over them")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.settings.seconds, "length of each measurement for the second table")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--cost_steps", options.cost_steps, "fewest steps in each measurement for the first table")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("!--no_speed", options.speed, "omits the second table");
  app.footer(kFooter);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  std::string process;
  CLI::App app("The ways to combine the workers' updates: how fast, how many bytes, what a step of each costs.",
               "bench_algorithms");
  muster::bench::AddOptions(app, options);
  app.add_option("--process", process, "the work of a process that this program starts")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!process.empty()) {
    muster::bench::Train(task, nlohmann::json::parse(process).get<muster::bench::StepsProcess>());
    return 0;
  }
  // Silences the log of the measurements in this process.
  muster::SetUpLog("", "error");
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-algorithms-", getpid());
  const int code = muster::bench::MeasureAll(options, folder);
  std::filesystem::remove_all(folder);
  return code;
}
