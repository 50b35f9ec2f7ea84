// `bench steps`: minibatches per second when training on several processes, beside the fastest plain loop of one
// process and beside two such processes at once, measured in turns in one run; `--table` shows where the time of a
// minibatch goes. Rows on stdout are JSON, tables are on stderr.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "bench/steps/steps_goals.h"
#include "bench/steps/steps_lines.h"
#include "bench/steps/steps_measurement.h"
#include "bench/steps/steps_process.h"
#include "bench/steps/steps_table.h"
#include "bench/support/processor.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::bench {
namespace {

constexpr char kFooter[] = R"(
In one run, in turns, every other round backwards, of each model: one plain process ("local"), two at once, a process
that is its own cluster ("alone"), and of every rule the asynchronous ways with 1 and 2 workers; with the first rule also
the other modes, the traced ways, and the plain process with the AMD switch off. A line's figures are the median of the
rounds and the least and most of them; "/ local", "/ two", "/untraced": the median of the rounds' ratios to one plain
process, to two at once, to the same way without --trace. At the end stand the goals, met or not.

Examples:
  ./dev bench steps                                       everything
  ./dev bench steps --models mlp100 --modes async --applies direct --rounds 3
  ./dev bench steps --table                               where a minibatch's time goes with two workers
  ./dev bench steps --table --applies server --modes async --models mlp2048
)";

struct Options {
  std::vector<std::string> models = {"mlp100", "mlp2048"};
  std::vector<std::string> rules = {"sgd", "adam"};
  std::vector<std::string> modes = {"async", "pipelined", "sync", kAllReduce};
  std::vector<std::string> applies = {"server", "auto", "direct"};
  std::vector<std::string> transports = {"tcp", "shm"};  // for ways in which the ps applies
  std::vector<std::string> wires = {"fp32"};             // the same
  std::vector<std::string> reduces = {"auto"};
  std::vector<std::string> traced = {"direct"};
  int workers = 2;
  int rounds = 5;
  bool without_undo = false;
  bool switch_off = true;
  bool table = false;
  StepsSettings settings;

  static bool Has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
  bool measures(const std::string& mode) const { return Has(modes, mode); }
};

// Returns, for a way in which the ps applies, one variant for each transport and precision.
std::vector<StepsWay> Variants(const Options& options, StepsWay way) {
  if (way.apply != "server") return {way};
  std::vector<StepsWay> ways;
  for (const std::string& transport : options.transports) {
    std::vector<std::string> wires = options.wires;
    // There is a goal for this variant.
    if (way.mode == "pipelined" && transport == "tcp" && !Options::Has(wires, "bf16")) wires.emplace_back("bf16");
    for (const std::string& wire : wires) {
      way.transport = transport;
      way.wire = wire;
      ways.push_back(way);
    }
  }
  return ways;
}

// Adds, for each number of workers, the ways with one, then those with two.
void AddForWorkers(const Options& options, const StepsWay& way, std::vector<StepsWay>& ways) {
  for (StepsWay variant : Variants(options, way)) {
    for (variant.workers = 1; variant.workers <= options.workers; ++variant.workers) {
      // A single worker in the arena trains in place either way.
      if (variant.apply == "auto" && variant.workers == 1 && Options::Has(options.applies, "direct")) continue;
      ways.push_back(variant);
      if (options.without_undo && variant.apply != "server") {
        ways.push_back(variant);
        ways.back().undo = false;
      }
      if (!Options::Has(options.traced, variant.apply) || variant.rule != options.rules[0]) continue;
      ways.push_back(variant);
      ways.back().traced = true;
    }
  }
}

// Adds the ways of two workers that wait for each other.
void AddTogether(const Options& options, const StepsWay& local, std::vector<StepsWay>& ways) {
  StepsWay way = local;
  way.workers = 2;
  way.mode = "sync";
  for (const std::string& apply : options.measures("sync") ? options.applies : std::vector<std::string>()) {
    // For workers in step, `direct` and `auto` are the same.
    if (apply == "direct" && Options::Has(options.applies, "auto")) continue;
    way.apply = apply == "direct" ? "auto" : apply;
    for (const StepsWay& variant : Variants(options, way)) ways.push_back(variant);
  }
  way.mode = kAllReduce;
  way.apply = "-";
  for (const char* transport : {"shm", "ring"}) {
    for (const std::string& reduce : options.measures(kAllReduce) ? options.reduces : std::vector<std::string>()) {
      way.transport = transport;
      way.reduce = reduce;
      ways.push_back(way);
    }
  }
}

// Returns all ways of one model and rule, the plain processes first.
std::vector<StepsWay> WaysOf(const Options& options, const std::string& model, const std::string& rule) {
  const StepsWay local = {.model = model, .rule = rule};
  const bool first = rule == options.rules[0];
  std::vector<StepsWay> ways = {local};
  StepsWay way = local;
  way.workers = 2;
  if (options.workers > 1) ways.push_back(way);
  way = local;
  way.amd = false;
  if (first && options.switch_off && !ThisProcessor().is_intel) ways.push_back(way);
  way = local;
  way.mode = kAlone;
  ways.push_back(way);
  way = local;
  for (const std::string& apply : options.measures("async") ? options.applies : std::vector<std::string>()) {
    way.mode = "async";
    way.apply = apply;
    AddForWorkers(options, way, ways);
  }
  if (!first) return ways;
  way.mode = "pipelined";
  way.apply = "server";
  if (options.measures(way.mode)) AddForWorkers(options, way, ways);
  if (options.workers > 1) AddTogether(options, local, ways);
  return ways;
}

int MeasureAll(const Options& options, const std::string& folder) {
  std::vector<std::vector<StepsWay>> groups;
  size_t measurements = 0;
  for (const std::string& model : options.models) {
    for (const std::string& rule : options.rules) {
      groups.push_back(WaysOf(options, model, rule));
      measurements += groups.back().size() * options.rounds;
    }
  }
  const Processor processor = ThisProcessor();
  std::fprintf(stderr, "%s, %d cores; %zu measurements, about %.0f minutes\n", processor.name.c_str(), processor.cores,
               measurements, MinutesFor(measurements, options.settings));
  std::vector<StepsLine> all;
  for (const std::vector<StepsWay>& ways : groups) {
    const std::vector<StepsLine> lines = MeasureInTurns(ways, options.rounds, options.settings, folder);
    PrintHeadings();
    PrintRows(lines);
    all.insert(all.end(), lines.begin(), lines.end());
  }
  PrintGoals(all, !processor.is_intel);
  return std::any_of(all.begin(), all.end(), [](const StepsLine& line) { return line.failed(); }) ? 1 : 0;
}

// Uses as many workers as asked for, and the first rule.
int PrintTable(const Options& options, const std::string& folder) {
  std::vector<StepsWay> chosen;
  for (const std::string& model : options.models)
    for (const StepsWay& way : WaysOf(options, model, options.rules[0]))
      if (way.workers == options.workers && way.amd && !way.traced) chosen.push_back(way);
  return PrintStepsTable(chosen, options.settings, folder) ? 0 : 1;
}

void AddOptions(CLI::App& app, Options& options) {
  const auto list = [&](const char* name, std::vector<std::string>& words, const char* what,
                        const std::vector<std::string>& accepted) {
    app.add_option(name, words, what)->delimiter(',')->capture_default_str()->check(CLI::IsMember(accepted));
  };
  list("--models", options.models, "784-100-10; 784-2048-2048-10", {"mlp100", "mlp2048"});
  list("--rules", options.rules, "rules of the asynchronous ways; other ways use the first one", {"sgd", "adam"});
  list("--modes", options.modes, "pipelined: one step stale; sync, all_reduce: two workers in step",
       {"async", "pipelined", "sync", kAllReduce});
  list("--applies", options.applies,
       "who applies updates: the ps; the worker in the ps's memory, and trains on a copy (auto) or in place (direct)",
       {"server", "auto", "direct"});
  list("--transports", options.transports, "transports for ways in which the ps applies", {"tcp", "shm"});
  list("--wire", options.wires, "precisions for these ways; pipelined over TCP also in bf16", {"fp32", "bf16", "fp16"});
  list(
      "--reduces", options.reduces,
      "when all_reduce averages gradients: after all are computed, within the backward pass as they come, beside it on "
      "a thread",
      {"auto", "after", "within", "beside"});
  list("--traced", options.traced, "whose asynchronous lines are also measured with --trace in all tasks",
       {"server", "auto", "direct", "none"});
  app.add_option("--workers", options.workers, "most workers; with --table, the exact number")
      ->capture_default_str()
      ->check(CLI::Range(1, 2));
  app.add_option("--rounds", options.rounds, "number of rounds; medians are over them")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.settings.seconds, "length of each measurement")->capture_default_str();
  app.add_option("--part_bytes", options.settings.part_bytes,
                 "of updates that go to a ps while they are computed; 0: never")
      ->capture_default_str();
  app.add_option("--bucket_bytes", options.settings.bucket_bytes,
                 "bytes of gradients that all_reduce averages together")
      ->capture_default_str();
  app.add_flag("--without_undo", options.without_undo, "also without what makes a worker's death harmless");
  app.add_flag("!--no_amd_off", options.switch_off, "omits the lines with the switch off");
  app.add_flag("--table", options.table, "shows where a minibatch's time goes instead: each way once, traced");
  app.footer(kFooter);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  std::string process;
  CLI::App app("Minibatches a second of training on several processes, beside plain processes.", "bench_steps");
  muster::bench::AddOptions(app, options);
  app.add_option("--process", process, "the work of a process that this program starts")->group("");
  CLI11_PARSE(app, argc, argv);
  if (!process.empty()) {
    muster::bench::Train(task, nlohmann::json::parse(process).get<muster::bench::StepsProcess>());
    return 0;
  }
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-steps-", getpid());
  const int code =
      options.table ? muster::bench::PrintTable(options, folder) : muster::bench::MeasureAll(options, folder);
  std::filesystem::remove_all(folder);
  return code;
}
