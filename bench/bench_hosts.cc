// `bench hosts`: what `muster run --hosts` costs, in real processes over real ssh: the time until the tasks' first
// lines on a few hosts and on many, beside `ssh HOST true`; the lines a second that one agent carries, without losing
// one, as `muster run` prints them and as `muster logs -f` reads them, beside a plain pipe and plain ssh; the agent's
// memory; what `muster train --on` command, ray, kubernetes and spark take to their first lines beyond a job of these
// systems' own. The hosts are namespaces of this machine, each with its own sshd, home and network, so it needs root.
// Rows on stdout are JSON, the table is on stderr. Exits with 1 if a goal is missed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "bench/support/figure_table.h"
#include "bench/support/lines_of_process.h"
#include "bench/support/numbered_lines.h"
#include "bench/support/on_command.h"
#include "bench/support/on_hosts.h"
#include "bench/support/on_kubernetes.h"
#include "bench/support/on_ray.h"
#include "bench/support/on_spark.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "bench/support/shared_connections.h"
#include "muster/base/absl_view.h"
#include "muster/base/monotonic.h"
#include "muster/base/status_macros.h"
#include "tests/process/testing/experiments.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {
namespace {

constexpr size_t kLineBytes = 100;
constexpr std::string_view kGreeting = "the first line";
constexpr absl::Duration kPatience = absl::Minutes(2);

constexpr Figure kFigures[] = {
    {"ssh_true_ms", FigureGoal::kNone, 0, "`ssh HOST true`, from before its fork to its end"},
    {"run_ms", FigureGoal::kNone, 0, "`muster run` on --hosts, until the first line of each task was read"},
    {"beyond_ssh_ms", FigureGoal::kAtMost, 1000, "the second less the first"},
    {"train_ms", FigureGoal::kNone, 0, "`muster train` on them likewise, its code copied to each"},
    {"train_beyond_ssh_ms", FigureGoal::kAtMost, 1000, "that, less `ssh HOST true`"},
    {"run_to_end_ms", FigureGoal::kNone, 0, "that `muster run`, until it has ended"},
    {"many_ssh_s", FigureGoal::kNone, 0, "`ssh HOST true` for each of --many hosts, 8 at a time"},
    {"many_s", FigureGoal::kAtMost, 5, "`muster run` on --many hosts, until the first line of each task was read"},
    {"many_shared_s", FigureGoal::kAtMost, 5, "the same over connections that are there already (ControlPath of ssh)"},
    {"many_ssh_cpu_s", FigureGoal::kNone, 0, "processor time of those `ssh HOST true` here and on the hosts"},
    {"many_cpu_s", FigureGoal::kNone, 0, "likewise of `muster run`, to its end"},
    {"run_lines_s", FigureGoal::kAtLeast, 200'000, "lines a second of one task, as `muster run` prints them"},
    {"pipe_lines_s", FigureGoal::kNone, 0, "the same program into a pipe"},
    {"ssh_lines_s", FigureGoal::kNone, 0, "`ssh HOST PROGRAM`"},
    {"lost_lines", FigureGoal::kAtMost, 0,
     "by `muster run`: not whole, or not in order; the most of all rounds counts"},
    {"logs_lines_s", FigureGoal::kAtLeast, 200'000,
     "lines a second of one task of `muster train`, as `muster logs -f` shows them"},
    {"logs_lost_lines", FigureGoal::kAtMost, 0,
     "by these two: not whole, or not in order; the most of all rounds counts"},
    {"run_us_a_line", FigureGoal::kNone, 0, "processor time of `muster run` and its ssh"},
    {"agent_mb", FigureGoal::kAtMost, 10, "private memory of an agent with --tasks tasks"},
    {"agent_flooded_mb", FigureGoal::kAtMost, 10, "likewise, when they have printed --lines lines"},
    {"agent_pss_mb", FigureGoal::kNone, 0, "likewise, with its share of what it has in common with others (PSS)"},
    {"command_ms", FigureGoal::kNone, 0,
     "`acquire` of 3 hosts and `start` of a program on each at once, until all have ended"},
    {"train_on_command_ms", FigureGoal::kNone, 0,
     "`muster train --on command`, until the first line of a task on each was read"},
    {"beyond_command_ms", FigureGoal::kAtMost, 2000, "the second less the first"},
    {"ray_ms", FigureGoal::kNone, 0, "`ray job submit`, until an actor on each of 3 nodes has answered its program"},
    {"train_on_ray_ms", FigureGoal::kNone, 0,
     "`muster train --on ray`, until the first line of a task on each was read"},
    {"beyond_ray_ms", FigureGoal::kAtMost, 2000, "the second less the first"},
    {"kubernetes_ms", FigureGoal::kNone, 0,
     "`kubectl apply` of 2 pods in the stand-in, until `kubectl get` has said that each has ended"},
    {"train_on_kubernetes_ms", FigureGoal::kNone, 0,
     "`muster train --on kubernetes`, until the first line of a task in each of 2 pods was read"},
    {"beyond_kubernetes_ms", FigureGoal::kAtMost, 2000, "the second less the first"},
    {"spark_ms", FigureGoal::kNone, 0, "`spark-submit`, until a barrier stage on 2 executors has answered its program"},
    {"train_on_spark_ms", FigureGoal::kNone, 0,
     "`muster train --on spark`, until the first line of a task on each was read"},
    {"beyond_spark_ms", FigureGoal::kAtMost, 2000, "the second less the first"},
    {"companions_mb", FigureGoal::kNone, 0, "private memory of the agent's other processes: guard, bridge"},
};

struct Options {
  int rounds = 5;
  int hosts = 4;
  int many = 64;
  int tasks = 8;
  int64_t lines = 1'000'000;
  std::vector<std::string> cases;
  std::string muster = SiblingProgram("muster");

  bool Wants(const std::string& one) const {
    return cases.empty() || std::find(cases.begin(), cases.end(), one) != cases.end();
  }
};

double Milliseconds(int64_t from) { return static_cast<double>(MonotonicNanos() - from) * 1e-6; }

class HostsBench {
 public:
  explicit HostsBench(const Options& options)
      : options_(options),
        hosts_(options.Wants("many") ? std::max(options.hosts, options.many) : options.hosts),
        shared_(hosts_),
        self_(std::filesystem::read_symlink("/proc/self/exe")) {
    std::filesystem::current_path(hosts_.shared());
  }
  ~HostsBench() { std::filesystem::current_path("/"); }
  HostsBench(const HostsBench&) = delete;
  HostsBench& operator=(const HostsBench&) = delete;

  // Runs all rounds; before them once on each host, so that muster is there.
  absl::Status Measure();
  // Returns whether all goals are met.
  bool Report() const { return PrintFigures("hosts", kFigures, values_); }

 private:
  struct Contender {
    const char* of_case;
    std::function<absl::Status()> measure;
  };
  // The way of numbered lines from a program to here.
  struct Printed {
    double a_second = 0;  // from the first to the last
    int64_t whole = 0;
    double cpu_seconds = 0;
  };

  void Note(const std::string& name, double value) { values_[name].push_back(value); }
  std::string FirstNames(int count) const {
    return absl::StrJoin(hosts_.names().begin(), hosts_.names().begin() + count, ",");
  }
  std::vector<std::string> Ssh(const std::string& host, const std::string& command) const;
  std::vector<std::string> Run(int hosts, int workers, const std::string& ssh_config,
                               const std::vector<std::string>& program) const;
  std::vector<std::string> Printer(int64_t lines) const {
    return {self_, "--print", absl::StrCat(lines), "--line_bytes", absl::StrCat(kLineBytes)};
  }

  // Returns the processor time that all hosts have used so far, once nothing runs there any more.
  double CpuOfHosts() const;
  absl::Status MeasureSsh();
  absl::Status MeasureManySsh();
  // Returns the milliseconds from before the fork of `command` until so many lines were read that end with kGreeting,
  // then waits for the end. `cpu_seconds` gets the processor time of `command`.
  absl::StatusOr<double> UntilGreetings(const std::vector<std::string>& command, const EnvironmentChanges& environment,
                                        int greetings, double* cpu_seconds = nullptr);
  // The same for `muster run` with a task on each host.
  absl::StatusOr<double> UntilGreetings(int hosts, const std::string& ssh_config, double* cpu_seconds = nullptr);
  absl::Status MeasureRun();
  absl::Status MeasureTrain();
  absl::Status MeasureMany();
  absl::Status MeasureManyShared();
  // Counts the numbered lines of `command`, behind the name of their task if it shows one. Calls `on_other` for each
  // other line.
  absl::StatusOr<Printed> Print(const std::vector<std::string>& command, const EnvironmentChanges& environment = {},
                                const std::function<void(std::string_view line)>& on_other = nullptr);
  absl::Status MeasureRunLines();
  // Starts an experiment on h1 that runs this command. Returns its id.
  absl::StatusOr<std::string> TrainDetached(const std::string& run, const EnvironmentChanges& environment);
  absl::Status MeasureLogsLines();
  absl::Status MeasurePlainLines(const char* name, const std::vector<std::string>& command);
  absl::Status MeasureMemory(bool flooded);
  absl::Status NoteMemory(bool flooded);
  absl::Status MeasureOnEngines();
  absl::Status MeasureOn(const std::string& name, const OnEngine& engine);

  const Options options_;
  const SimulatedHosts hosts_;
  SharedConnections shared_;
  const std::string self_;
  FigureValues values_;
};

std::vector<std::string> HostsBench::Ssh(const std::string& host, const std::string& command) const {
  return hosts_.On("h0", {"ssh", "-F", hosts_.ssh_config(), "-o", "BatchMode=yes", "-T", "--", host, command});
}

std::vector<std::string> HostsBench::Run(int hosts, int workers, const std::string& ssh_config,
                                         const std::vector<std::string>& program) const {
  std::vector<std::string> words = {options_.muster, "run", "--hosts", FirstNames(hosts), "--ssh_config", ssh_config};
  words.insert(words.end(), {"--ps", "0", "--workers", absl::StrCat(workers), "--"});
  words.insert(words.end(), program.begin(), program.end());
  return hosts_.On("h0", words);
}

double HostsBench::CpuOfHosts() const {
  double seconds = 0;
  for (const std::string& host : hosts_.names()) {
    hosts_.AwaitNothingOn(host);
    seconds += CpuSecondsWithEnded(hosts_.FirstOf(host));
  }
  return seconds;
}

absl::Status HostsBench::MeasureSsh() {
  const std::string output = hosts_.shared() + "/output";
  const int64_t start = MonotonicNanos();
  const int code = WaitFor(Start(Ssh("h1", "true"), {}, output));
  const double milliseconds = Milliseconds(start);
  if (code != 0) {
    ShowEnd(output);
    return absl::InternalError(absl::StrCat("ssh exited with ", code));
  }
  Note("ssh_true_ms", milliseconds);
  return absl::OkStatus();
}

absl::Status HostsBench::MeasureManySsh() {
  std::vector<std::string> words = Ssh("{}", "true");
  words.insert(words.begin(), {"/usr/bin/xargs", "-P", "8", "-a", "names", "-I", "{}"});
  std::ofstream("names") << absl::StrJoin(hosts_.names().begin(), hosts_.names().begin() + options_.many, "\n");
  const double before = CpuOfHosts();
  double cpu_seconds = 0;
  const int64_t start = MonotonicNanos();
  const int code = WaitFor(Start(words, {}, hosts_.shared() + "/output"), &cpu_seconds);
  Note("many_ssh_s", Milliseconds(start) / 1000);
  Note("many_ssh_cpu_s", cpu_seconds + CpuOfHosts() - before);
  return code == 0 ? absl::OkStatus() : absl::InternalError(absl::StrCat("xargs ssh exited with ", code));
}

absl::StatusOr<double> HostsBench::UntilGreetings(int hosts, const std::string& ssh_config, double* cpu_seconds) {
  return UntilGreetings(Run(hosts, hosts, ssh_config, {"/bin/echo", std::string(kGreeting)}), {}, hosts, cpu_seconds);
}

absl::StatusOr<double> HostsBench::UntilGreetings(const std::vector<std::string>& command,
                                                  const EnvironmentChanges& environment, int greetings,
                                                  double* cpu_seconds) {
  const int64_t start = MonotonicNanos();
  LinesOfProcess run(command, environment);
  double milliseconds = 0;
  std::string lines;
  RETURN_IF_ERROR(run.Read(kPatience,
                           [&](std::string_view line) {
                             absl::StrAppend(&lines, AbslView(line), "\n");
                             const absl::string_view text = AbslView(line);
                             if (absl::EndsWith(text, AbslView(kGreeting)) && --greetings == 0)
                               milliseconds = Milliseconds(start);
                             return true;
                           })
                      .status());
  if (run.Wait(cpu_seconds) == 0 && greetings == 0) return milliseconds;
  return absl::InternalError(absl::StrCat("muster failed, or printed too little:\n", lines));
}

absl::Status HostsBench::MeasureRun() {
  const int64_t start = MonotonicNanos();
  ASSIGN_OR_RETURN(const double milliseconds, UntilGreetings(options_.hosts, hosts_.ssh_config()));
  Note("run_to_end_ms", Milliseconds(start));
  Note("run_ms", milliseconds);
  if (const auto ssh = values_.find("ssh_true_ms"); ssh != values_.end())
    Note("beyond_ssh_ms", milliseconds - ssh->second.back());
  return absl::OkStatus();
}

absl::Status HostsBench::MeasureTrain() {
  std::filesystem::create_directory("project");
  std::ofstream("project/muster.yml") << "project: bench\ntrain:\n  torchrun: {workers: " << options_.hosts
                                      << "}\n  run: echo " << kGreeting << "\n";
  const std::string here = std::filesystem::current_path().string();
  const std::vector<std::string> command =
      hosts_.On("h0", {options_.muster, "train", "-f", here + "/project", "--hosts", FirstNames(options_.hosts),
                       "--ssh_config", hosts_.ssh_config()});
  ASSIGN_OR_RETURN(const double milliseconds,
                   UntilGreetings(command, {{"MUSTER_HOME", here + "/home"}}, options_.hosts));
  Note("train_ms", milliseconds);
  if (const auto ssh = values_.find("ssh_true_ms"); ssh != values_.end())
    Note("train_beyond_ssh_ms", milliseconds - ssh->second.back());
  return absl::OkStatus();
}

absl::Status HostsBench::MeasureMany() {
  const double before = CpuOfHosts();
  double cpu_seconds = 0;
  ASSIGN_OR_RETURN(const double milliseconds, UntilGreetings(options_.many, hosts_.ssh_config(), &cpu_seconds));
  Note("many_s", milliseconds / 1000);
  Note("many_cpu_s", cpu_seconds + CpuOfHosts() - before);
  return absl::OkStatus();
}

absl::Status HostsBench::MeasureManyShared() {
  ASSIGN_OR_RETURN(const double milliseconds, UntilGreetings(options_.many, shared_.ssh_config()));
  Note("many_shared_s", milliseconds / 1000);
  return absl::OkStatus();
}

// Returns what a task has written of a line that `muster run` prints ("[worker:0] text"), or `muster logs` ("1.master |
// text").
std::string_view BehindTask(std::string_view line) {
  constexpr std::string_view kTask = "[worker:0] ", kBar = " | ";
  if (absl::StartsWith(AbslView(line), AbslView(kTask))) return line.substr(kTask.size());
  const size_t bar = line.find(kBar);
  return bar == std::string_view::npos ? line : line.substr(bar + kBar.size());
}

absl::StatusOr<HostsBench::Printed> HostsBench::Print(const std::vector<std::string>& command,
                                                      const EnvironmentChanges& environment,
                                                      const std::function<void(std::string_view line)>& on_other) {
  LineCount count(kLineBytes);
  Printed printed;
  int64_t first = 0, last = 0;
  std::string others;
  LinesOfProcess process(command, environment);
  RETURN_IF_ERROR(process
                      .Read(kPatience,
                            [&](std::string_view line) {
                              if (!count.Take("", BehindTask(line))) {
                                absl::StrAppend(&others, AbslView(line), "\n");
                                if (on_other) on_other(line);
                                return true;
                              }
                              if (count.whole() == 1) first = MonotonicNanos();
                              if (count.whole() == options_.lines) last = MonotonicNanos();
                              return true;
                            })
                      .status());
  if (process.Wait(&printed.cpu_seconds) != 0)
    return absl::InternalError(absl::StrCat("what prints lines has failed:\n", others));
  printed.whole = count.whole();
  if (last > first) printed.a_second = static_cast<double>(options_.lines) * 1e9 / static_cast<double>(last - first);
  return printed;
}

absl::Status HostsBench::MeasureRunLines() {
  ASSIGN_OR_RETURN(const Printed printed, Print(Run(1, 1, hosts_.ssh_config(), Printer(options_.lines))));
  Note("run_lines_s", printed.a_second);
  Note("lost_lines", static_cast<double>(options_.lines - printed.whole));
  Note("run_us_a_line", printed.cpu_seconds * 1e6 / static_cast<double>(options_.lines));
  return absl::OkStatus();
}

absl::StatusOr<std::string> HostsBench::TrainDetached(const std::string& run, const EnvironmentChanges& environment) {
  const std::string folder = std::filesystem::current_path() / "printing";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/muster.yml") << "project: printing\ntrain:\n  framework: any\n  run: " << run << "\n";
  constexpr std::string_view kBegun = "experiment ";
  std::string id, said;
  LinesOfProcess train(hosts_.On("h0", {options_.muster, "train", "--detach", "-f", folder, "--hosts", "h1",
                                        "--ssh_config", hosts_.ssh_config()}),
                       environment);
  RETURN_IF_ERROR(train
                      .Read(kPatience,
                            [&](std::string_view line) {
                              absl::StrAppend(&said, AbslView(line), "\n");
                              if (!absl::StartsWith(AbslView(line), AbslView(kBegun))) return true;
                              line.remove_prefix(kBegun.size());
                              id = line.substr(0, line.find(' '));
                              return true;
                            })
                      .status());
  if (train.Wait() == 0 && !id.empty()) return id;
  return absl::InternalError("muster train --detach has failed, or said no id:\n" + said);
}

// The task prints its first line when `muster logs -f` has shown that it runs, so nothing is read from a log that was
// there before.
absl::Status HostsBench::MeasureLogsLines() {
  const std::string gate_path = hosts_.shared() + "/gate";
  std::filesystem::remove(gate_path);
  const ScriptGate gate(gate_path);
  const std::string home = hosts_.shared() + "/home_of_logs";
  const EnvironmentChanges environment = {{"MUSTER_HOME", home}};
  const std::string run = absl::StrCat("read line < ", gate_path, " && ", absl::StrJoin(Printer(options_.lines), " "));
  ASSIGN_OR_RETURN(const std::string id, TrainDetached(run, environment));
  const std::string runs = id + ".master | ";
  ASSIGN_OR_RETURN(const Printed printed,
                   Print(hosts_.On("h0", {options_.muster, "logs", id, "-f"}), environment, [&](std::string_view line) {
                     if (absl::StartsWith(AbslView(line), runs) && absl::EndsWith(AbslView(line), "--> RUNNING"))
                       gate.LetThrough();
                   }));
  Note("logs_lines_s", printed.a_second);
  Note("logs_lost_lines", static_cast<double>(options_.lines - printed.whole));
  hosts_.AwaitNothingOn("h1");
  std::filesystem::remove_all(home);
  return absl::OkStatus();
}

absl::Status HostsBench::MeasurePlainLines(const char* name, const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const Printed printed, Print(command));
  Note(name, printed.a_second);
  return absl::OkStatus();
}

// After printing, the tasks wait until their agent has been looked at.
absl::Status HostsBench::MeasureMemory(bool flooded) {
  const std::string gate_path = hosts_.shared() + "/gate";
  std::filesystem::remove(gate_path);
  const ScriptGate gate(gate_path);
  std::vector<std::string> printer = Printer(flooded ? options_.lines / options_.tasks : 1);
  printer.insert(printer.end(), {"--gate", gate.path()});
  int printing = options_.tasks;
  LinesOfProcess run(Run(1, options_.tasks, hosts_.ssh_config(), printer), {});
  ASSIGN_OR_RETURN(const bool all, run.Read(kPatience, [&printing](std::string_view line) {
    if (absl::EndsWith(AbslView(line), AbslView(kAllPrinted))) --printing;
    return printing > 0;
  }));
  if (!all) return absl::InternalError("muster run has ended before its tasks had printed all");
  RETURN_IF_ERROR(NoteMemory(flooded));
  gate.LetThrough(options_.tasks);
  RETURN_IF_ERROR(run.Read(kPatience, [](std::string_view) { return true; }).status());
  return run.Wait() == 0 ? absl::OkStatus() : absl::InternalError("muster run has failed");
}

absl::Status HostsBench::NoteMemory(bool flooded) {
  double companions = 0;
  int agents = 0;
  for (const SimulatedHosts::Running& running : hosts_.ProcessesOf("h1")) {
    if (absl::StrContains(running.words, self_)) continue;
    const Memory memory = MemoryOf(running.pid);
    if (memory.pss_mb == 0) return absl::NotFoundError("cannot read the memory of " + running.words);
    if (!absl::StrContains(running.words, " agent --serve ")) {
      companions += memory.own_mb;
      continue;
    }
    ++agents;
    Note(flooded ? "agent_flooded_mb" : "agent_mb", memory.own_mb);
    if (!flooded) Note("agent_pss_mb", memory.pss_mb);
  }
  if (!flooded) Note("companions_mb", companions);
  return agents == 1 ? absl::OkStatus() : absl::InternalError(absl::StrCat("there are ", agents, " agents on h1"));
}

// Apart from the others, since an idle Ray takes much of a small machine.
absl::Status HostsBench::MeasureOn(const std::string& name, const OnEngine& engine) {
  const std::string own = name + "_ms", trained = absl::StrCat("train_on_", name, "_ms");
  const std::vector<std::function<absl::Status()>> contenders = {
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const double milliseconds, engine.OfItself());
        Note(own, milliseconds);
        return absl::OkStatus();
      },
      [&]() -> absl::Status {
        ASSIGN_OR_RETURN(const double milliseconds,
                         UntilGreetings(engine.Train(options_.muster), engine.environment(), engine.tasks()));
        Note(trained, milliseconds);
        return absl::OkStatus();
      }};
  for (const auto& once : contenders) RETURN_IF_ERROR(once());
  for (const std::string& each : {own, trained}) values_[each].clear();  // programs came from the disk
  for (int round = 0; round < options_.rounds; ++round) {
    for (const size_t i : Turns(contenders.size(), round)) RETURN_IF_ERROR(contenders[i]());
    Note(absl::StrCat("beyond_", name, "_ms"), values_[trained].back() - values_[own].back());
  }
  return absl::OkStatus();
}

absl::Status HostsBench::MeasureOnEngines() {
  const std::string greeting(kGreeting);
  const auto is_there = [&](const std::string& name, const std::string& why_not) {
    if (!why_not.empty()) std::fprintf(stderr, "bench hosts: without %s: %s\n", name.c_str(), why_not.c_str());
    return why_not.empty();
  };
  if (options_.Wants("command")) RETURN_IF_ERROR(MeasureOn("command", OnCommand(greeting)));
  if (options_.Wants("ray") && is_there("ray", RayCluster::WhyNot()))
    RETURN_IF_ERROR(MeasureOn("ray", OnRay(greeting)));
  if (options_.Wants("kubernetes") && is_there("kubernetes", KubeCluster::WhyNot()))
    RETURN_IF_ERROR(MeasureOn("kubernetes", OnKubernetes(greeting, options_.muster)));
  if (options_.Wants("spark") && is_there("spark", OnSpark::WhyNot()))
    RETURN_IF_ERROR(MeasureOn("spark", OnSpark(greeting)));
  return absl::OkStatus();
}

absl::Status HostsBench::Measure() {
  std::vector<Contender> contenders = {
      {"start", [this] { return MeasureSsh(); }},
      {"start", [this] { return MeasureRun(); }},
      {"start", [this] { return MeasureTrain(); }},
      {"many", [this] { return MeasureManySsh(); }},
      {"many", [this] { return MeasureMany(); }},
      {"many", [this] { return MeasureManyShared(); }},
      {"lines", [this] { return MeasureRunLines(); }},
      {"lines", [this] { return MeasureLogsLines(); }},
      {"lines", [this] { return MeasurePlainLines("pipe_lines_s", Printer(options_.lines)); }},
      {"lines",
       [this] { return MeasurePlainLines("ssh_lines_s", Ssh("h1", absl::StrJoin(Printer(options_.lines), " "))); }},
      {"memory", [this] { return MeasureMemory(/*flooded=*/false); }},
      {"memory", [this] { return MeasureMemory(/*flooded=*/true); }}};
  std::erase_if(contenders, [this](const Contender& one) { return !options_.Wants(one.of_case); });
  const int64_t start = MonotonicNanos();
  RETURN_IF_ERROR(UntilGreetings(static_cast<int>(hosts_.names().size()), hosts_.ssh_config()).status());
  std::fprintf(stderr, "bench hosts: muster has been copied to %zu hosts, and run there, in %.1f s\n",
               hosts_.names().size(), Milliseconds(start) / 1000);
  if (options_.Wants("many")) RETURN_IF_ERROR(shared_.Open(options_.many));
  for (int round = 0; round < options_.rounds; ++round)
    for (const size_t i : Turns(contenders.size(), round)) RETURN_IF_ERROR(contenders[i].measure());
  return MeasureOnEngines();
}

int Main(int argc, char** argv) {
  Options options;
  int64_t print = -1;
  size_t line_bytes = kNumberedLineBytes;
  std::string gate;
  CLI::App app("What a run over hosts costs: the way to its tasks' first lines, their output, the agent's memory.",
               "bench_hosts");
  app.add_option("--rounds", options.rounds, "number of rounds; in each, everything is measured in turns")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--cases", options.cases, "start, many, lines, memory, command, ray, kubernetes, spark; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember({"start", "many", "lines", "memory", "command", "ray", "kubernetes", "spark"}));
  app.add_option("--hosts", options.hosts, "hosts of `start`")->capture_default_str()->check(CLI::Range(1, 200));
  app.add_option("--many", options.many, "hosts of `many`")->capture_default_str()->check(CLI::Range(1, 200));
  app.add_option("--tasks", options.tasks, "tasks of `memory`")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--lines", options.lines, "lines of `lines` and `memory`")
      ->capture_default_str()
      ->check(CLI::Range(1000, 1'000'000'000));
  app.add_option("--muster", options.muster, "the muster to measure")->capture_default_str();
  app.add_option("--print", print, "(the benchmark's own: be a task that prints so many lines)")->group("");
  app.add_option("--line_bytes", line_bytes, "(likewise: of so many bytes)")->group("");
  app.add_option("--gate", gate, "(likewise: the FIFO that it reads a byte from at its end)")->group("");
  CLI11_PARSE(app, argc, argv);
  if (print >= 0) return PrintNumberedLines(print, gate, line_bytes);
  return MeasureOnHosts<HostsBench>("hosts", SimulatedHosts::WhyNot(), options);
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
