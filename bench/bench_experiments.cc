// `bench experiments`: what `muster train` and its companions cost, in real processes: the time until the tasks' first
// lines are shown, beside the program alone and torchrun; `status` and `ls` with 10,000 past experiments; the log lines
// per minute that are kept, without losing one, beside cat; the supervisor's memory. All in one MUSTER_HOME that has
// those past experiments. Rows on stdout are JSON, the table is on stderr. Exits with 1 if a goal is missed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/support/figure_table.h"
#include "bench/support/lines_of_process.h"
#include "bench/support/numbered_lines.h"
#include "bench/support/past_experiments.h"
#include "bench/support/process.h"
#include "bench/support/rounds.h"
#include "muster/base/absl_view.h"
#include "muster/base/clock.h"
#include "muster/base/monotonic.h"
#include "muster/base/status_macros.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/task_log/log_reader.h"

namespace muster::bench {
namespace {

constexpr char kProject[] = "bench";
constexpr std::string_view kGreeting = "the first line";
constexpr absl::Duration kPatience = absl::Minutes(2);

using Goal = FigureGoal;

constexpr Figure kFigures[] = {
    {"beyond_program_ms", Goal::kAtMost, 150, "`muster train`: until each task's first line was shown, less the next"},
    {"program_ms", Goal::kNone, 0, "the program alone, until its first line"},
    {"train_ms", Goal::kNone, 0, "`muster train`, until the first line of each task was shown"},
    {"torchrun_ms", Goal::kNone, 0, "torchrun with as many processes of that program, likewise"},
    {"status_ms", Goal::kAtMost, 100, "`muster status` in a project's folder, with all past experiments"},
    {"status_all_ms", Goal::kAtMost, 100, "`muster status --all`"},
    {"status_id_ms", Goal::kAtMost, 100, "`muster status ID`, of one that ended long ago"},
    {"ls_ms", Goal::kAtMost, 100, "`muster ls`"},
    {"ls_everything_ms", Goal::kNone, 0, "`muster ls --all --last 0`: prints all of them"},
    {"status_no_past_ms", Goal::kNone, 0, "`muster status` where no experiment has ever been"},
    {"kept_lines_a_minute", Goal::kAtLeast, 1e6, "by the times in the log"},
    {"shown_lines_a_minute", Goal::kNone, 0, "by `muster train`, into a pipe that is read"},
    {"cat_lines_a_minute", Goal::kNone, 0, "the same programs, each into `cat > file`"},
    {"lost_lines", Goal::kAtMost, 0, "not kept, or not shown, whole and in order; the most of all rounds counts"},
    {"supervisor_us_a_line", Goal::kNone, 0, "processor time of the supervisor"},
    {"train_us_a_line", Goal::kNone, 0, "processor time of `muster train`, which shows them"},
    {"supervisor_mb", Goal::kAtMost, 30, "most that was resident of the supervisor, when its tasks run"},
    {"supervisor_flooded_mb", Goal::kAtMost, 30, "likewise, when all those lines have come"},
};

struct Options {
  int rounds = 5;
  int tasks = 8;
  int past = 10'000;
  int64_t lines = 1'000'000;
  std::string torchrun = SourceFolder() + "/.venv/bin/torchrun";
  std::vector<std::string> cases;

  int64_t lines_of_task() const { return (lines + tasks - 1) / tasks; }
};

double Milliseconds(int64_t from) { return static_cast<double>(MonotonicNanos() - from) * 1e-6; }

absl::StatusOr<double> MegabytesOf(pid_t process, std::string_view field) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, absl::StrCat(AbslView(field), ":"))) continue;
    int64_t kilobytes = 0;
    std::string_view text = std::string_view(line).substr(field.size() + 1);
    text.remove_suffix(std::min<size_t>(text.size(), std::string_view(" kB").size()));
    if (absl::SimpleAtoi(AbslView(text), &kilobytes)) return static_cast<double>(kilobytes) / 1024;
  }
  return absl::NotFoundError(absl::StrCat("process ", process, " has no ", AbslView(field), " (any more)"));
}

// A folder with everything in it, removed at the end, when none of its experiments runs any more.
class ExperimentsBench {
 public:
  explicit ExperimentsBench(const Options& options)
      : options_(options),
        folder_(std::filesystem::temp_directory_path() / absl::StrCat("bench_experiments.", getpid())),
        home_(folder_ + "/home"),
        muster_(SiblingProgram("muster")) {}
  ~ExperimentsBench();
  ExperimentsBench(const ExperimentsBench&) = delete;
  ExperimentsBench& operator=(const ExperimentsBench&) = delete;

  absl::Status Prepare();
  // Runs all rounds.
  absl::Status Measure();
  // Returns whether all goals are met.
  bool Report() const { return PrintFigures("experiments", kFigures, values_); }

 private:
  struct Contender {
    const char* of_case;
    std::function<absl::Status()> measure;
  };
  // The result of a run with numbered lines.
  struct Printed {
    double shown_ms = 0;  // from the first to the last shown line
    double supervisor_seconds = 0, train_seconds = 0;
    double supervisor_mb = 0;
    int64_t shown = 0, kept = 0;
    absl::Duration kept_in = absl::ZeroDuration();
  };

  std::vector<Contender> Contenders();
  void Note(const std::string& name, double value) { values_[name].push_back(value); }
  std::string WriteFile(const std::string& name, const std::string& run) const;
  EnvironmentChanges Environment(const std::string& home = "") const {
    return {{"MUSTER_HOME", home.empty() ? home_.path() : home}};
  }

  absl::StatusOr<double> UntilGreetings(const std::vector<std::string>& command, int greetings);
  absl::Status MeasureStart();
  absl::Status MeasureTorchrun();
  absl::Status MeasureCommand(const char* name, const std::vector<std::string>& arguments, const std::string& home);
  absl::StatusOr<Printed> RunPrinting(int64_t lines_of_task);
  absl::Status CountKept(const ExperimentId& id, Printed& printed) const;
  absl::Status MeasureIdle();
  absl::Status MeasureLines();
  absl::Status MeasureCat();

  const Options options_;
  const std::string folder_;
  const Home home_;
  const std::string muster_;
  FigureValues values_;
};

ExperimentsBench::~ExperimentsBench() {
  {
    const auto registry = Registry::Open(home_, RealClock());
    const auto open = registry.ok() ? (*registry)->List({.only_open = true}) : registry.status();
    std::vector<std::string> kill = {muster_, "kill", "--now"};
    for (const RunRecord& run : open.value_or(std::vector<RunRecord>())) kill.push_back(run.id.ToString());
    if (kill.size() > 3) WaitFor(Start(kill, Environment(), "/dev/null"));
  }
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

absl::Status ExperimentsBench::Prepare() {
  std::filesystem::create_directories(folder_ + "/project");
  std::filesystem::current_path(folder_ + "/project");
  WriteFile("muster.yml", "true");
  const int64_t start = MonotonicNanos();
  RETURN_IF_ERROR(WritePastExperiments(home_, kProject, options_.past));
  std::fprintf(stderr, "bench experiments: wrote %d past experiments of %d tasks in %.1f s\n", options_.past,
               kTasksOfPastExperiment, Milliseconds(start) / 1000);
  return absl::OkStatus();
}

// Returns the file's folder. Each experiment has its own, so that its code is that one file.
std::string ExperimentsBench::WriteFile(const std::string& name, const std::string& run) const {
  const std::filesystem::path path = std::filesystem::path(folder_) / "project" / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << "project: " << kProject << "\ntrain:\n  framework: tensorflow\n  tensorflow:\n"
                      << "    distributed: {worker: " << options_.tasks << "}\n  run: " << run << "\n";
  return path;
}

std::vector<ExperimentsBench::Contender> ExperimentsBench::Contenders() {
  const std::string one = absl::StrCat(std::max(1, options_.past / 2));
  const auto command = [this](const char* name, std::vector<std::string> arguments, std::string home = "") {
    return Contender{"status", [this, name, arguments = std::move(arguments), home = std::move(home)] {
                       return MeasureCommand(name, arguments, home);
                     }};
  };
  return {{"start", [this] { return MeasureStart(); }},
          {"start", [this] { return MeasureTorchrun(); }},
          command("status_ms", {"status"}),
          command("status_all_ms", {"status", "--all"}),
          command("status_id_ms", {"status", one}),
          command("ls_ms", {"ls"}),
          command("ls_everything_ms", {"ls", "--all", "--last", "0"}),
          command("status_no_past_ms", {"status"}, folder_ + "/empty_home"),
          {"lines", [this] { return MeasureLines(); }},
          {"lines", [this] { return MeasureCat(); }},
          {"memory", [this] { return MeasureIdle(); }}};
}

absl::Status ExperimentsBench::Measure() {
  std::vector<Contender> contenders = Contenders();
  const std::vector<std::string>& wanted = options_.cases;
  std::erase_if(contenders, [&wanted](const Contender& one) {
    return !wanted.empty() && std::find(wanted.begin(), wanted.end(), one.of_case) == wanted.end();
  });
  for (int round = 0; round < options_.rounds; ++round)
    for (const size_t i : Turns(contenders.size(), round)) RETURN_IF_ERROR(contenders[i].measure());
  return absl::OkStatus();
}

// Returns the milliseconds from before the fork until that many greetings have been read; then waits for the end.
absl::StatusOr<double> ExperimentsBench::UntilGreetings(const std::vector<std::string>& command, int greetings) {
  const int64_t start = MonotonicNanos();
  LinesOfProcess process(command, Environment());
  ASSIGN_OR_RETURN(const bool came, process.Read(kPatience, [&greetings](std::string_view line) {
    if (absl::EndsWith(AbslView(line), AbslView(kGreeting))) --greetings;
    return greetings > 0;
  }));
  const double milliseconds = Milliseconds(start);
  std::string rest;
  const auto keep = [&rest](std::string_view line) {
    absl::StrAppend(&rest, AbslView(line), "\n");
    return true;
  };
  RETURN_IF_ERROR(process.Read(kPatience, keep).status());
  if (process.Wait() == 0 && came) return milliseconds;
  return absl::InternalError(absl::StrCat(command[0], " failed, or printed too little; its last lines:\n", rest));
}

absl::Status ExperimentsBench::MeasureStart() {
  const std::string echo = absl::StrCat("echo '", AbslView(kGreeting), "'");
  const std::string file = WriteFile("start/muster.yml", echo);
  ASSIGN_OR_RETURN(const double alone, UntilGreetings({"/bin/sh", "-c", echo}, 1));
  ASSIGN_OR_RETURN(const double all, UntilGreetings({muster_, "train", "-f", file}, options_.tasks));
  Note("program_ms", alone);
  Note("train_ms", all);
  Note("beyond_program_ms", all - alone);
  return absl::OkStatus();
}

absl::Status ExperimentsBench::MeasureTorchrun() {
  if (!std::filesystem::exists(options_.torchrun)) return absl::OkStatus();
  const std::vector<std::string> command = {options_.torchrun,
                                            "--standalone",
                                            "--nproc_per_node",
                                            absl::StrCat(options_.tasks),
                                            "--no-python",
                                            "/bin/sh",
                                            "-c",
                                            absl::StrCat("echo '", AbslView(kGreeting), "'")};
  ASSIGN_OR_RETURN(const double all, UntilGreetings(command, options_.tasks));
  Note("torchrun_ms", all);
  return absl::OkStatus();
}

absl::Status ExperimentsBench::MeasureCommand(const char* name, const std::vector<std::string>& arguments,
                                              const std::string& home) {
  std::vector<std::string> command = {muster_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string output = folder_ + "/output";
  const int64_t start = MonotonicNanos();
  const int code = WaitFor(Start(command, Environment(home), output));
  const double milliseconds = Milliseconds(start);
  if (code != 0) {
    ShowEnd(output);
    return absl::InternalError(absl::StrCat("muster ", arguments[0], " exited with ", code));
  }
  Note(name, milliseconds);
  return absl::OkStatus();
}

// After printing, the tasks wait until the supervisor has been looked at.
absl::StatusOr<ExperimentsBench::Printed> ExperimentsBench::RunPrinting(int64_t lines_of_task) {
  const std::string gate = folder_ + "/gate";
  std::filesystem::remove(gate);
  const int opened = mkfifo(gate.c_str(), 0600) == 0 ? open(gate.c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (opened < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the FIFO ", gate));
  const std::unique_ptr<const int, void (*)(const int*)> closed(&opened, [](const int* fd) { close(*fd); });
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string file =
      WriteFile("print/muster.yml", absl::StrCat("exec '", self, "' --print ", lines_of_task, " --gate '", gate, "'"));

  Printed printed;
  LineCount shown;
  int64_t first = 0;
  int printing = options_.tasks;
  LinesOfProcess train({muster_, "train", "-f", file}, Environment());
  ASSIGN_OR_RETURN(const bool all, train.Read(kPatience, [&](std::string_view line) {
    const size_t bar = line.find(" | ");
    if (bar == std::string_view::npos) return true;
    const std::string_view text = line.substr(bar + 3);
    if (!shown.Take(line.substr(0, bar), text) && text == kAllPrinted) --printing;
    if (first == 0 && shown.whole() > 0) first = MonotonicNanos();
    return printing > 0;
  }));
  if (!all) return absl::InternalError("muster train has ended before its tasks had printed all");
  printed.shown_ms = Milliseconds(first);
  printed.shown = shown.whole();

  ExperimentId id;
  {
    ASSIGN_OR_RETURN(const auto registry, Registry::Open(home_, RealClock()));
    ASSIGN_OR_RETURN(id, registry->Last(kProject));
    ASSIGN_OR_RETURN(const RunRecord run, registry->Run(id));
    printed.supervisor_seconds = CpuSeconds(run.supervisor);
    ASSIGN_OR_RETURN(printed.supervisor_mb, MegabytesOf(run.supervisor, "VmHWM"));
  }
  const std::string bytes(static_cast<size_t>(options_.tasks), '.');
  if (write(opened, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return absl::ErrnoToStatus(errno, "cannot let the tasks go on");
  RETURN_IF_ERROR(train.Read(kPatience, [](std::string_view) { return true; }).status());
  if (train.Wait(&printed.train_seconds) != 0) return absl::InternalError("muster train has failed");
  RETURN_IF_ERROR(CountKept(id, printed));
  return printed;
}

absl::Status ExperimentsBench::CountKept(const ExperimentId& id, Printed& printed) const {
  LineCount kept;
  absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
  LogReader reader({{home_.logs(id), ""}}, {});
  RETURN_IF_ERROR(reader.ReadMore([&](const LogLineRecord& line) {
    if (line.kind != LogKind::kStdout || !kept.Take(line.task, line.text)) return;
    first = std::min(first, line.when);
    last = std::max(last, line.when);
  }));
  printed.kept = kept.whole();
  printed.kept_in = last - first;
  return absl::OkStatus();
}

absl::Status ExperimentsBench::MeasureIdle() {
  ASSIGN_OR_RETURN(const Printed printed, RunPrinting(1));
  Note("supervisor_mb", printed.supervisor_mb);
  return absl::OkStatus();
}

absl::Status ExperimentsBench::MeasureLines() {
  ASSIGN_OR_RETURN(const Printed printed, RunPrinting(options_.lines_of_task()));
  const int64_t lines = options_.lines_of_task() * options_.tasks;
  const auto of_lines = static_cast<double>(lines);
  Note("lost_lines", static_cast<double>(lines - std::min(printed.kept, printed.shown)));
  Note("kept_lines_a_minute", of_lines / std::max(1e-6, absl::ToDoubleMinutes(printed.kept_in)));
  Note("shown_lines_a_minute", of_lines / printed.shown_ms * 60'000);
  Note("supervisor_us_a_line", printed.supervisor_seconds * 1e6 / of_lines);
  Note("train_us_a_line", printed.train_seconds * 1e6 / of_lines);
  Note("supervisor_flooded_mb", printed.supervisor_mb);
  return absl::OkStatus();
}

absl::Status ExperimentsBench::MeasureCat() {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string script;
  for (int i = 0; i < options_.tasks; ++i)
    absl::StrAppend(&script, "'", self, "' --print ", options_.lines_of_task(), " | cat > '", folder_, "/cat.", i,
                    "' & ");
  const int64_t start = MonotonicNanos();
  const int code = WaitFor(Start({"/bin/sh", "-c", script + "wait"}, {}, folder_ + "/output"));
  const double milliseconds = Milliseconds(start);
  if (code != 0) return absl::InternalError(absl::StrCat("the script with cat exited with ", code));
  for (int i = 0; i < options_.tasks; ++i) std::filesystem::remove(absl::StrCat(folder_, "/cat.", i));
  Note("cat_lines_a_minute", static_cast<double>(options_.lines_of_task() * options_.tasks) / milliseconds * 60'000);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  int64_t print = -1;
  std::string gate;
  CLI::App app("What experiments cost: the way to their tasks' first lines, status, logs, the supervisor's memory.",
               "bench_experiments");
  app.add_option("--rounds", options.rounds, "number of rounds; in each, everything is measured in turns")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--cases", options.cases, "start, status, lines, memory; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember({"start", "status", "lines", "memory"}));
  app.add_option("--tasks", options.tasks, "tasks in an experiment")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--past", options.past, "number of experiments that have ended")
      ->capture_default_str()
      ->check(CLI::Range(2, 1'000'000));
  app.add_option("--lines", options.lines, "lines printed by all tasks together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--torchrun", options.torchrun, "the torchrun to compare with")->capture_default_str();
  app.add_option("--print", print, "(the benchmark's own: be a task that prints so many lines)")->group("");
  app.add_option("--gate", gate, "(likewise: the FIFO that it reads a byte from at its end)")->group("");
  CLI11_PARSE(app, argc, argv);
  if (print >= 0) return PrintNumberedLines(print, gate);
  if (!std::filesystem::exists(options.torchrun))
    std::fprintf(stderr, "SKIPPED: torchrun, for there is no %s (./dev setup installs it)\n", options.torchrun.c_str());

  ExperimentsBench bench(options);
  absl::Status done = bench.Prepare();
  if (done.ok()) done = bench.Measure();
  if (!done.ok()) {
    std::fprintf(stderr, "bench experiments: %s\n", std::string(done.message()).c_str());
    return 1;
  }
  return bench.Report() ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) { return muster::bench::Main(argc, argv); }
