// `bench steps`: minibatches a second of training through a parameter server, or by all-reduce, beside the fastest
// plain loop of one process (of two workers in step: of two such processes at once), measured in turns in one run. Rows
// on stdout are JSON, the table is on stderr.
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

constexpr char kAlone[] = "alone";
constexpr char kAllReduce[] = "all_reduce";
constexpr char kLocal[] = "local";

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

struct Options {
  std::string role;
  std::string out;
  double seconds = 2;
  int rounds = 5;
  MlpWork work;
  std::string apply = "server";    // of a worker
  std::string transport = "auto";  // of a worker
  std::string wire = "fp32";       // of a worker: gradients and parameters
  bool undo = true;                // of a worker that applies its updates itself
  size_t part_bytes = StoreClientOptions().part_bytes;
  std::vector<std::string> models = {"mlp100", "mlp2048"};
  std::vector<std::string> rules = {"sgd", "adam"};
  std::vector<std::string> applies = {"server", "auto", "direct"};
  std::vector<std::string> transports = {"tcp", "shm"};  // where the ps applies
  std::vector<std::string> wires = {"fp32"};             // likewise
  std::vector<std::string> modes = {"async", "pipelined", "sync", "all_reduce"};
  std::string mode = "async";                   // of a worker
  std::vector<std::string> reduces = {"auto"};  // when all-reduce averages
  std::string reduce = "auto";                  // of a worker: likewise
  size_t bucket_bytes = AllReduceOptions().bucket_bytes;
  bool without_undo = false;
  bool trace = false;  // each line also with --trace in all tasks
  int workers = 2;
  bool amd_off = true;
};

// Leaves what an update saves for the case of a death away: what that costs is to be measured.
class NoUndo final : public ArenaProbe {
 public:
  void At(ArenaPoint) override {}
  bool Has(PlantedBug bug) const override { return bug == PlantedBug::kNoUndo; }
  bool dying() const override { return false; }
};

OptimizerSpec OptimizerOf(const MlpWork& work) {
  if (work.rule == "adam") return Adam({.learning_rate = kMlpAdamLearningRate});
  return Sgd({.learning_rate = kMlpLearningRate});
}

ReduceWhen ReduceWhenOf(const std::string& name) {
  if (name == "after") return ReduceWhen::kAfter;
  if (name == "within") return ReduceWhen::kWithin;
  return name == "beside" ? ReduceWhen::kBeside : ReduceWhen::kAuto;
}

Trainer MakeTrainer(Replica& replica, const Options& options, uint32_t workers) {
  const OptimizerSpec optimizer = OptimizerOf(options.work);
  if (options.mode == "sync")
    return Synchronous(replica, optimizer, {.replicas_to_aggregate = workers, .total_replicas = workers});
  if (options.mode == "pipelined") return Pipelined(replica, optimizer);
  if (options.mode == kAllReduce)
    return AllReduce(replica, optimizer, {.bucket_bytes = options.bucket_bytes, .when = ReduceWhenOf(options.reduce)});
  return Asynchronous(replica, optimizer);
}

// A worker process: trains for options.seconds, writes its rate to options.out.
int Work(const TaskConfig& task, const Options& options) {
  MlpData data(1 + task.global_id());
  Mlp model(options.work);
  NoUndo no_undo;
  const WirePrecision wire = ParseWirePrecision(options.wire).value();
  const bool on_ps = options.mode != kAllReduce;
  Server server(task, {.apply = on_ps ? ParseApplyChoice(options.apply).value() : ApplyChoice::kAuto,
                       .transport = ParseTransportChoice(options.transport).value(),
                       .wire = {.gradients = wire, .parameters = wire},
                       .threads = 1,
                       .probe = options.undo ? nullptr : &no_undo,
                       .part_bytes = options.part_bytes});
  Replica replica(server, model);
  Trainer trainer = MakeTrainer(replica, options, static_cast<uint32_t>(task.worker_tasks().size()));
  MonitoredTrainingSession session(server, {.log_step_count_steps = 0});
  const auto step = [&] { session.Run(trainer, [&] { return MlpLoss(model, data.Next()); }); };
  for (int i = 0; i < kWarmUpSteps; ++i) step();
  int64_t steps = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; Seconds(start) < options.seconds; ++steps) step();
  std::ofstream(options.out) << steps / Seconds(start) << "\n";
  return 0;
}

// The reference, in a process of its own like every other.
int WorkAlone(const Options& options) {
  std::ofstream(options.out) << MeasureLocalStepsPerSecond(options.work, options.seconds) << "\n";
  return 0;
}

double ReadRate(const std::string& path) {
  double rate = 0;
  std::ifstream(path) >> rate;
  return rate;
}

// What one row is about.
struct Case {
  MlpWork work;
  bool amd = true;    // the processor switch of torch_bridge/mkl_amd, for the processes that train
  std::string apply;  // who applies
  bool undo = true;
  std::string mode = "async";
  std::string wire = "fp32";
  bool trace = false;               // of all tasks
  std::string transport = "arena";  // tcp, shm, or nothing is sent; of all-reduce shm or ring
  std::string reduce = {};          // when all-reduce averages
};

std::vector<std::string> WordsOf(const Options& options, const Case& which) {
  std::vector<std::string> words = {
      "--seconds", absl::StrCat(options.seconds), "--model", which.work.model, "--rule", which.work.rule};
  if (!which.apply.empty()) words.insert(words.end(), {"--apply", which.apply});
  if (!which.reduce.empty()) words.insert(words.end(), {"--reduce", which.reduce});
  const bool tcp = which.transport == "tcp" || which.transport == "ring";
  words.insert(words.end(),
               {"--transport", tcp ? "tcp" : "auto", "--bucket_bytes", absl::StrCat(options.bucket_bytes)});
  if (!which.undo) words.emplace_back("--no_undo");
  words.insert(words.end(),
               {"--mode", which.mode, "--precision", which.wire, "--part_bytes", absl::StrCat(options.part_bytes)});
  return words;
}

pid_t StartMeasuring(const Options& options, const Case& which, const std::string& role, const std::string& out,
                     const EnvironmentChanges& environment) {
  std::vector<std::string> words = WordsOf(options, which);
  words.insert(words.end(), {"--role", role, "--out", out});
  EnvironmentChanges changes = environment;
  changes.emplace_back("MUSTER_MKL_AMD", which.amd ? "1" : "0");
  if (which.trace) changes.emplace_back("MUSTER_TRACE", std::filesystem::path(out).replace_filename("trace").string());
  return StartSelf(words, changes, out + ".log");
}

// The local loop; `apply` says "alone": a cluster of one process, which trains as any worker does.
double MeasureAlone(const Options& options, const Case& which, const std::string& folder) {
  const std::string out = folder + "/local";
  Case inside = which;
  if (which.apply == kAlone) inside.apply = "auto";
  const std::string role = which.apply == kAlone ? "worker" : "local";
  if (WaitFor(StartMeasuring(options, inside, role, out, {})) == 0) return ReadRate(out);
  ShowEnd(out + ".log");
  return 0;
}

// Two at once: what two workers have to be measured by that wait for each other. The sum of their rates.
double MeasureTwoAlone(const Options& options, const Case& which, const std::string& folder) {
  const std::string outs[] = {folder + "/local0", folder + "/local1"};
  pid_t children[2];
  for (int i = 0; i < 2; ++i) children[i] = StartMeasuring(options, which, "local", outs[i], {});
  double rate = 0;
  for (int i = 0; i < 2; ++i) {
    if (WaitFor(children[i]) != 0) return ShowEnd(outs[i] + ".log"), 0;
    rate += ReadRate(outs[i]);
  }
  return rate;
}

// `workers` workers (the first is the chief) and, but for all-reduce, a ps; the sum of their rates.
double MeasureCluster(const Options& options, const Case& which, const std::string& folder, int workers) {
  const bool on_ps = which.mode != kAllReduce;
  nlohmann::json cluster;
  if (on_ps) cluster["ps"] = {absl::StrCat("127.0.0.1:", FreePort())};
  for (int i = 0; i < workers; ++i) cluster["worker"].push_back(absl::StrCat("127.0.0.1:", FreePort()));
  const auto tf_config = [&](const char* type, int index) {
    return nlohmann::json{{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}}.dump();
  };
  EnvironmentChanges ps_environment = {{"TF_CONFIG", tf_config("ps", 0)}};
  if (which.trace) ps_environment.emplace_back("MUSTER_TRACE", folder + "/trace");
  const pid_t ps = on_ps ? Start({SiblingProgram("muster"), "ps"}, ps_environment, folder + "/ps.log") : 0;
  std::vector<pid_t> children;
  std::vector<std::string> outs;
  for (int i = 0; i < workers; ++i) {
    outs.push_back(absl::StrCat(folder, "/worker", i));
    children.push_back(StartMeasuring(options, which, "worker", outs.back(), {{"TF_CONFIG", tf_config("worker", i)}}));
  }
  bool good = true;
  for (size_t i = 0; i < children.size(); ++i) {
    if (WaitFor(children[i]) == 0) continue;
    good = false;
    ShowEnd(outs[i] + ".log");
  }
  if (!good && on_ps) kill(ps, SIGTERM);  // it would wait for those who left without a word
  if (on_ps) good = WaitFor(ps) == 0 && good;
  double rate = 0;
  for (const std::string& out : outs) rate += ReadRate(out);
  return good ? rate : 0;
}

std::string NameOf(const Case& which) {
  return absl::StrCat(which.apply, which.undo ? "" : "*", which.wire == "fp32" ? "" : " " + which.wire,
                      which.trace ? " traced" : "");
}

void PrintRow(const Case& which, int workers, double rate, double local) {
  nlohmann::ordered_json row = {{"bench", "steps"},    {"model", which.work.model},  {"rule", which.work.rule},
                                {"mode", which.mode},  {"apply", which.apply},       {"transport", which.transport},
                                {"wire", which.wire},  {"amd_switch", which.amd},    {"workers", workers},
                                {"steps_per_s", rate}, {"local_steps_per_s", local}, {"ratio", rate / local}};
  if (!which.reduce.empty()) row["reduce"] = which.reduce;
  if (!which.undo) row["undo"] = false;
  if (which.trace) row["trace"] = true;
  std::printf("%s\n", row.dump().c_str());
  std::fprintf(stderr, "%-8s %-5s %-10s %-11s %-7s %-9s %10s %8d %12.0f %12.0f %7.3f\n", which.work.model.c_str(),
               which.work.rule.c_str(), which.mode.c_str(), NameOf(which).c_str(), which.reduce.c_str(),
               which.transport.c_str(), which.amd ? "on" : "off", workers, rate, local, rate / local);
}

// One line's measurements, one a round.
struct Line {
  Case which;
  int workers = 0;  // of a cluster; 0: one process
  std::vector<double> rates;
};

// Each case beside itself with --trace, if that is asked for.
void AddTraced(const Options& options, std::vector<Case>& cases) {
  if (!options.trace) return;
  std::vector<Case> both;
  for (Case& which : cases) {
    both.push_back(which);
    both.push_back(which);
    both.back().trace = true;
  }
  cases = std::move(both);
}

// Where the ps applies, one for each transport and precision.
std::vector<Case> CasesOf(const Options& options, Case which) {
  if (which.apply != "server") return {which};
  std::vector<Case> cases;
  for (const std::string& transport : options.transports) {
    for (const std::string& wire : options.wires) {
      which.transport = transport;
      which.wire = wire;
      cases.push_back(which);
    }
  }
  return cases;
}

// The local loop, and one worker and two workers of every way to apply, in turns. Every other round goes backwards: on
// a machine that is slower for whoever comes after a pause, or gets slower within a round, no line gains by its place.
bool ReportWork(const Options& options, const std::string& folder, const MlpWork& work, bool amd) {
  std::vector<Line> lines = {{.which = {work, amd}}, {.which = {work, amd, kAlone}}};
  for (const std::string& apply : options.applies) {
    std::vector<Case> cases = CasesOf(options, {work, amd, apply});
    if (options.without_undo && apply != "server") cases.push_back({work, amd, apply, /*undo=*/false});
    AddTraced(options, cases);
    for (int workers = 1; workers <= options.workers; ++workers)
      for (const Case& which : cases) lines.push_back({.which = which, .workers = workers});
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Line& line : lines)
      line.rates.push_back(line.workers == 0 ? MeasureAlone(options, line.which, folder)
                                             : MeasureCluster(options, line.which, folder, line.workers));
    std::reverse(lines.begin(), lines.end());
  }
  if (options.rounds % 2 != 0) std::reverse(lines.begin(), lines.end());
  const double local = Median(lines[0].rates);
  bool good = local > 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const double rate = Median(lines[i].rates);
    PrintRow(lines[i].which, std::max(1, lines[i].workers), rate, local);
    good = good && rate > 0;
  }
  return good;
}

// Two locals at once, and two workers in step, in turns.
bool ReportTogether(const Options& options, const std::string& folder, const MlpWork& work, std::vector<Case> cases) {
  AddTraced(options, cases);
  std::vector<double> locals;
  std::vector<std::vector<double>> rates(cases.size());
  for (int round = 0; round < options.rounds; ++round) {
    locals.push_back(MeasureTwoAlone(options, {work}, folder));
    for (size_t i = 0; i < cases.size(); ++i)
      rates[i].push_back(cases[i].mode == kLocal ? MeasureAlone(options, cases[i], folder)
                                                 : MeasureCluster(options, cases[i], folder, 2));
  }
  bool good = Median(locals) > 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    PrintRow(cases[i], cases[i].mode == kLocal ? 1 : 2, Median(rates[i]), Median(locals));
    good = good && Median(rates[i]) > 0;
  }
  return good;
}

// In place or not is the same there: `direct` is `auto`.
std::vector<Case> SynchronousCases(const Options& options, const MlpWork& work) {
  std::vector<Case> cases;
  for (const std::string& apply : options.applies)
    if (apply != "direct")
      for (const Case& which : CasesOf(options, {work, true, apply, true, "sync"})) cases.push_back(which);
  return cases;
}

// Beside one local loop alone, too: two in step are meant to be more than that.
std::vector<Case> AllReduceCases(const Options& options, const MlpWork& work) {
  std::vector<Case> cases = {{.work = work, .mode = kLocal, .transport = "-"}};
  for (const char* transport : {"shm", "ring"})
    for (const std::string& reduce : options.reduces)
      cases.push_back({.work = work, .apply = "own", .mode = kAllReduce, .transport = transport, .reduce = reduce});
  return cases;
}

// The local loop, and one worker and two workers that send while they compute, in turns.
bool ReportPipelined(const Options& options, const std::string& folder, const MlpWork& work) {
  std::vector<Line> lines = {{.which = {work}}};
  for (const Case& which : CasesOf(options, {.work = work, .apply = "server", .mode = "pipelined"}))
    for (int workers = 1; workers <= options.workers; ++workers) lines.push_back({.which = which, .workers = workers});
  for (int round = 0; round < options.rounds; ++round)
    for (Line& line : lines)
      line.rates.push_back(line.workers == 0 ? MeasureAlone(options, line.which, folder)
                                             : MeasureCluster(options, line.which, folder, line.workers));
  const double local = Median(lines[0].rates);
  bool good = local > 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    PrintRow(lines[i].which, lines[i].workers, Median(lines[i].rates), local);
    good = good && Median(lines[i].rates) > 0;
  }
  return good;
}

int Report(const Options& options) {
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("bench-steps-", getpid());
  std::filesystem::create_directories(folder);
  std::fprintf(stderr, "%-8s %-5s %-10s %-11s %-7s %-9s %10s %8s %12s %12s %7s   (*: without undo)\n", "model", "rule",
               "mode", "apply", "reduce", "transport", "AMD switch", "workers", "steps/s", "local", "ratio");
  bool good = true;
  const auto measures = [&](const std::string& mode) {
    return std::find(options.modes.begin(), options.modes.end(), mode) != options.modes.end();
  };
  for (const std::string& model : options.models) {
    for (const std::string& rule : options.rules) {
      if (measures("async")) good = ReportWork(options, folder, {model, rule}, true) && good;
      if (measures("pipelined")) good = ReportPipelined(options, folder, {model, rule}) && good;
      const MlpWork work = {model, rule};
      if (measures("sync") && options.workers > 1)
        good = ReportTogether(options, folder, work, SynchronousCases(options, work)) && good;
      if (measures(kAllReduce) && options.workers > 1)
        good = ReportTogether(options, folder, work, AllReduceCases(options, work)) && good;
    }
  }
  // What the switch is worth, once.
  if (options.amd_off && measures("async"))
    good = ReportWork(options, folder, {options.models[0], options.rules[0]}, false) && good;
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  const auto task = muster::TaskConfig::FromCommandLine(argc, argv);
  muster::bench::Options options;
  CLI::App app("Steps a second through a parameter server beside one plain process.", "bench_steps");
  app.add_option("--seconds", options.seconds, "of each measurement")->capture_default_str();
  app.add_option("--rounds", options.rounds, "medians are over so many interleaved rounds")->capture_default_str();
  app.add_option("--models", options.models, "mlp100, mlp2048")->delimiter(',')->capture_default_str();
  app.add_option("--rules", options.rules, "sgd, adam")->delimiter(',')->capture_default_str();
  app.add_option("--applies", options.applies, "who applies: server, auto, direct")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--transports", options.transports, "for --applies=server: tcp, shm")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--wire", options.wires, "in what is sent where the ps applies: fp32, bf16, fp16")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--modes", options.modes, "async, pipelined (one step stale), sync and all_reduce (two workers)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--reduces", options.reduces,
                 "when all_reduce averages gradients: auto, after all are computed, within the backward pass as they "
                 "come, beside it on a thread")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "after", "within", "beside"}));
  app.add_option("--bucket_bytes", options.bucket_bytes, "of gradients that all_reduce averages together")
      ->capture_default_str();
  app.add_flag("--without_undo", options.without_undo, "also without what makes a worker's death harmless");
  app.add_flag("--traced", options.trace, "also with --trace in all tasks");
  app.add_option("--workers", options.workers, "at most: 1 or 2")->capture_default_str();
  app.add_flag("!--no_amd_off", options.amd_off, "leaves the rows with the switch off away");
  app.add_option("--part_bytes", options.part_bytes, "of updates that go to a ps while they are computed; 0: never")
      ->capture_default_str();
  app.add_option("--role", options.role, "of a process that this program starts itself")->group("");
  app.add_option("--out", options.out, "where such a process writes its rate")->group("");
  app.add_option("--model", options.work.model, "of such a process")->group("");
  app.add_option("--rule", options.work.rule, "of such a process")->group("");
  app.add_option("--apply", options.apply, "of such a process")->group("");
  app.add_option("--transport", options.transport, "of such a process")->group("");
  app.add_option("--reduce", options.reduce, "of such a process")->group("");
  app.add_option("--mode", options.mode, "of such a process")->group("");
  app.add_option("--precision", options.wire, "of such a process")->group("");
  app.add_flag("!--no_undo", options.undo, "of such a process")->group("");
  CLI11_PARSE(app, argc, argv);
  if (options.role == "worker") return muster::bench::Work(task, options);
  if (options.role == "local") return muster::bench::WorkAlone(options);
  return muster::bench::Report(options);
}
