// `muster monitor [ID]`: what the tasks of an experiment use of the machine, and how far they are, while they run.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/watch/live_text.h"
#include "muster/launch/watch/progress.h"
#include "muster/launch/watch/usage.h"
#include "muster/launch/watch/usage_table.h"

namespace muster {
namespace {

constexpr char kMonitorDescription[] = "Show how much of the machine the tasks of an experiment use";

constexpr char kMonitorFooter[] = R"(
Shows one row per task and one for all of them together; for a grid, the tasks of the runs that haven't ended. CPU is in
percent of one core, so four busy cores are 400. The total of MEM is the task's limit, or the machine's memory without
one. N/A: no GPU. Programs of framework muster also report their steps per second, loss and staleness. On a terminal the
table is redrawn in place, elsewhere tables of 80 columns follow each other. Columns that don't fit are left out. It ends with the experiment; Ctrl-C only stops watching.

Examples:
  muster monitor               the last experiment of the project here
  muster monitor 4
  muster monitor 4.worker.1
  muster monitor 4 --once      one table
  muster monitor 4 --json      one JSON object per line, every two seconds; memory in bytes

Exit codes: 0; 2 no such experiment.)";

// The first reading has no CPU usage, which is measured between two readings.
constexpr absl::Duration kBetweenFirstTwo = absl::Milliseconds(500);
// The agents of hosts tell what is used once a second, and the supervisor writes it down once somebody watches. One
// table waits that long for two values of each task.
constexpr absl::Duration kTwoOfHostsWithin = absl::Seconds(3);
// From a job that shares no folder with this host: its collector may look every five seconds alone.
constexpr absl::Duration kTwoOfFarWithin = absl::Seconds(20);
// Width of tables that aren't shown on a terminal.
constexpr size_t kColumnsElsewhere = 80;
constexpr double kShortestInterval = 0.1;
constexpr double kLongestInterval = 86400;

struct MonitorFlags {
  std::string id;
  std::string interval = "2";
  bool once = false;
  bool json = false;
};

// The signals that end watching, or (SIGWINCH) ask for a redraw, as a descriptor to wait for.
class Signals {
 public:
  Signals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    // Status pages, and the reader of this output, may go away.
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~Signals() { close(fd_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Returns false if it must end.
  bool Wait(absl::Duration time) const {
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) <= 0) return true;
    bool goes_on = true;
    for (signalfd_siginfo info; read(fd_, &info, sizeof info) == sizeof info;)
      goes_on = goes_on && info.ssi_signo == SIGWINCH;
    return goes_on;
  }

 private:
  int fd_ = -1;
};

struct Reading {
  std::vector<UsageRow> rows;
  bool anything_runs = false;
  bool lacks_cpu = false;  // of a task that runs
  bool is_far = false;     // its usage is fetched (docs/far_homes.md)
  bool ended = false;
};

// Reads again and again what there is to show of an experiment, a run or a task.
class Watched {
 public:
  Watched(const OpenedHome& opened, ExperimentName name)
      : opened_(opened), name_(std::move(name)), reader_({.machine_mem_bytes = machine_mem_bytes_}) {}

  absl::StatusOr<Reading> Read() {
    // Otherwise an experiment whose supervisor is killed meanwhile would seem to run for ever.
    RETURN_IF_ERROR(opened_.registry->Reconcile().status());
    ASSIGN_OR_RETURN(const RunRecord run, opened_.registry->Run(name_.id));
    ASSIGN_OR_RETURN(const std::vector<ExperimentId> ids, IdsOf(run));
    ASSIGN_OR_RETURN(const auto tasks, TasksOf(ids));
    SayThatIWatch(ids);
    if (name_.task.has_value() && tasks.empty())
      return absl::NotFoundError(absl::StrCat(FullName(name_.id, *name_.task), ": experiment ", name_.id.ToString(),
                                              " has no such task; muster status ", ShownId(name_.id), " lists them"));
    std::vector<std::pair<std::string, TaskRecord>> running;
    for (const auto& [name, task] : tasks)
      if ((task.pid > 0 || !task.host.empty()) && !HasEnded(task.state)) running.emplace_back(name, task);
    const std::map<std::string, TaskUsage> usages = reader_.Read(running, RealClock().Now(), UsagesOnHosts(ids));
    Reading reading = {.rows = {}, .anything_runs = !running.empty(), .ended = HasEnded(run.state)};
    reading.is_far = std::any_of(ids.begin(), ids.end(), [this](const auto& id) { return IsFar(opened_.home, id); });
    for (const auto& [name, task] : running) {
      const auto usage = usages.find(name);
      reading.lacks_cpu |= usage == usages.end() || !usage->second.cpu_percent.has_value();
    }
    for (const auto& [name, task] : tasks) {
      UsageRow row = {.name = name, .project = run.project, .state = task.state, .usage = {}, .progress = {}};
      if (const auto usage = usages.find(name); usage != usages.end()) {
        row.usage = usage->second;
        if (!task.status_address.empty()) row.progress = ReadProgress(task.status_address);
      }
      reading.rows.push_back(std::move(row));
    }
    if (name_.task.has_value()) {
      reading.ended = reading.ended || HasEnded(reading.rows.front().state);
      return reading;
    }
    UsageRow total = {
        .name = name_.id.ToString(), .project = run.project, .state = run.state, .usage = {}, .progress = {}};
    if (!usages.empty()) total.usage = TotalUsage(usages, machine_mem_bytes_);
    reading.rows.push_back(std::move(total));
    return reading;
  }

 private:
  // Returns the tasks by name; for a grid, those of the runs that haven't ended.
  // Returns the run, and of a grid those that go on.
  absl::StatusOr<std::vector<ExperimentId>> IdsOf(const RunRecord& run) const {
    std::vector<ExperimentId> ids;
    if (run.runs > 0) {
      ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, opened_.registry->Runs(run.id.number));
      for (const RunRecord& one : runs)
        if (!HasEnded(one.state)) ids.push_back(one.id);
    }
    ids.push_back(run.id);  // of a grid, has the build task, common to all runs
    return ids;
  }

  // Tells the supervisors of runs that have begun to write what their tasks on hosts use.
  void SayThatIWatch(const std::vector<ExperimentId>& ids) const {
    for (const ExperimentId& id : ids) {
      const absl::StatusOr<RunRecord> run = opened_.registry->Run(id);
      if (run.ok() && run->supervisor > 0) SayWatched(opened_.home.requests(id));
      if (IsFar(opened_.home, id)) WantFar(opened_.home, id);
    }
  }

  std::map<std::string, HostUsage> UsagesOnHosts(const std::vector<ExperimentId>& ids) const {
    std::map<std::string, HostUsage> usages;
    for (const ExperimentId& id : ids)
      for (const auto& [task, usage] : ReadHostUsage(opened_.home.host_usage(id))) usages[FullName(id, task)] = usage;
    return usages;
  }

  absl::StatusOr<std::vector<std::pair<std::string, TaskRecord>>> TasksOf(const std::vector<ExperimentId>& ids) const {
    std::vector<std::pair<std::string, TaskRecord>> tasks;
    for (const ExperimentId& id : ids) {
      ASSIGN_OR_RETURN(const RunRecord run, opened_.registry->Run(id));
      ASSIGN_OR_RETURN(std::vector<TaskRecord> of_run, opened_.registry->Tasks(id));
      // Another machine's process numbers are other processes here.
      if (!opened_.registry->IsHere(run))
        for (TaskRecord& task : of_run) task.pid = 0;
      for (const TaskRecord& task : of_run)
        if (!name_.task.has_value() || task.task == *name_.task) tasks.emplace_back(FullName(id, task.task), task);
    }
    return tasks;
  }

  const OpenedHome& opened_;
  const ExperimentName name_;
  const int64_t machine_mem_bytes_ = ThisMachine().mem_bytes;
  UsageReader reader_;
};

// Shows the readings. The destructor restores the terminal.
class Screen {
 public:
  explicit Screen(bool json) : json_(json) {}
  ~Screen() { Put(live_.End()); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Returns false if nobody reads it any more.
  bool Show(const std::vector<UsageRow>& rows) {
    const absl::Time now = RealClock().Now();
    if (json_) return Put(UsageJson(rows, now) + "\n");
    if (is_terminal_) {
      const TerminalSize size = SizeOfTerminal();
      return Put(live_.Draw(UsageTable(rows, static_cast<size_t>(size.columns), &shape_), size));
    }
    const std::vector<std::string> lines = UsageTable(rows, kColumnsElsewhere, &shape_);
    const bool first = std::exchange(first_, false);
    return Put(absl::StrCat(first ? "" : "\n", ShownTime(now), "\n", absl::StrJoin(lines, "\n"), "\n"));
  }

 private:
  static TerminalSize SizeOfTerminal() {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
    return {.columns = size.ws_col, .rows = size.ws_row};
  }
  static bool Put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  }

  const bool json_;
  const bool is_terminal_ = isatty(STDOUT_FILENO) == 1 && OwnVariable("TERM") != "dumb";
  bool first_ = true;
  UsageShape shape_;
  LiveText live_;
};

absl::StatusOr<absl::Duration> IntervalOf(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= kShortestInterval && seconds <= kLongestInterval)
    return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrCat("--interval '", text, "': accepted are seconds from ", kShortestInterval, " to ", kLongestInterval));
}

absl::Status Watch(const MonitorFlags& flags) {
  ASSIGN_OR_RETURN(const absl::Duration interval, IntervalOf(flags.interval));
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(ExperimentName name, NameOrLast(*opened.registry, flags.id));
  const Signals signals;
  Watched watched(opened, std::move(name));
  Screen screen(flags.json);
  const absl::Time began = BootClock().Now();
  for (bool first = true;; first = false) {
    ASSIGN_OR_RETURN(const Reading reading, watched.Read());
    const absl::Duration within = reading.is_far ? kTwoOfFarWithin : kTwoOfHostsWithin;
    const bool may_come = first || (reading.lacks_cpu && BootClock().Now() < began + within);
    const bool to_be_completed = flags.once && may_come && reading.anything_runs && !reading.ended;
    if (!to_be_completed && (!screen.Show(reading.rows) || flags.once || reading.ended)) return absl::OkStatus();
    if (!signals.Wait(first || to_be_completed ? std::min(interval, kBetweenFirstTwo) : interval))
      return absl::OkStatus();
  }
}

}  // namespace

void AddMonitorCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<MonitorFlags>();
  CLI::App* command = app.add_subcommand("monitor", kMonitorDescription);
  command
      ->add_option("ID", flags->id, "An experiment, a run of a grid or a task (default: the project's last experiment)")
      ->type_name("")
      ->check(RefuseEmptyId);
  command->add_flag("--once", flags->once, "Show one table and end");
  command->add_option("--interval", flags->interval, "Time between tables (default 2)")->type_name("SECONDS");
  command->add_flag("--json", flags->json, "Print one JSON object per line");
  command->footer(kMonitorFooter);
  command->callback([flags, &exit_code] {
    const absl::Status done = Watch(*flags);
    exit_code = done.ok() ? 0 : ReportError("monitor", done);
  });
}

}  // namespace muster
