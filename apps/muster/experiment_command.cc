#include "apps/muster/experiment_command.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/muster/log_output.h"
#include "apps/muster/usage_error.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/environment.h"
#include "muster/launch/backends/local/pid_fd.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/task_log/log_reader.h"
#include "muster/launch/task_log/shown_line.h"

namespace muster {
namespace {

// Finds experiments that have lost their supervisor, and says so: of a grid in one line, not of each run that waited.
absl::StatusOr<std::vector<ExperimentId>> ReconcileAloud(Registry& registry, const Home& home) {
  ASSIGN_OR_RETURN(std::vector<ExperimentId> lost, registry.Reconcile(home));
  const std::set<ExperimentId> all(lost.begin(), lost.end());
  for (const ExperimentId& id : lost) {
    if (id.run != 0 && all.contains({id.number, 0})) continue;
    const absl::StatusOr<RunRecord> run = registry.Run(id);
    const std::string reason = run.ok() && !run->reason.empty() ? run->reason : "its supervisor is gone";
    std::fprintf(stderr, "muster: experiment %s failed: %s\n", id.ToString().c_str(), reason.c_str());
  }
  return lost;
}

// Of the file in the working directory; "" if there is none.
absl::StatusOr<std::string> ProjectHere() {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  if (error) return "";
  const absl::StatusOr<std::string> found = FindExperimentFile(here);
  if (absl::IsNotFound(found.status())) return "";
  RETURN_IF_ERROR(found.status());
  const std::filesystem::path path = JoinPath(here, *found);
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadFile(path.string()));
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(text, path.filename().string()));
  return file.project;
}

std::vector<LogReader::Source> SourcesOf(const Home& home, const ExperimentId& id, const RunRecord& record) {
  std::vector<LogReader::Source> sources = {{home.logs(id), ""}};
  if (id.run != 0) return sources;
  for (int run = 1; run <= record.runs; ++run) sources.push_back({home.logs({id.number, run}), absl::StrCat(run, ".")});
  return sources;
}

// One ShowLog.
class ShownLog {
 public:
  ShownLog(const OpenedHome& opened, const ExperimentId& id, const RunRecord& record, const FollowOptions& options)
      : home_(opened.home),
        registry_(*opened.registry),
        id_(id),
        runs_(id.run == 0 ? record.runs : 0),
        options_(options),
        reader_(SourcesOf(opened.home, id, record), options.only),
        output_(options.stop_fd) {
    if (options.last_lines >= 0) reader_.StartAtLast(options.last_lines);
  }
  ~ShownLog() { ForgetSupervisor(); }
  ShownLog(const ShownLog&) = delete;
  ShownLog& operator=(const ShownLog&) = delete;

  absl::StatusOr<bool> Show();

 private:
  absl::Status LookAtState();
  bool IsSupervised(RunState state) const;
  void WatchSupervisor(pid_t pid);
  void ForgetSupervisor();
  absl::Status FindNames();
  void Take(const LogLineRecord& line);
  void Wait();

  // Constant after construction.
  const Home& home_;
  Registry& registry_;
  const ExperimentId id_;
  const int runs_;
  const FollowOptions& options_;

  LogReader reader_;
  LogOutput output_;
  size_t width_ = 0;  // of names
  bool look_ = true;  // at the state, whenever that was done last
  absl::Time looked_ = absl::InfinitePast();
  bool ended_ = false;  // nobody writes any more
  bool stopped_ = false;
  pid_t supervisor_ = 0;    // the last that was watched
  int supervisor_fd_ = -1;  // readable when it has ended; -1: not watched (any more)
};

absl::StatusOr<bool> ShownLog::Show() {
  RETURN_IF_ERROR(FindNames());
  for (;;) {
    // First, so that whatever was written before the end is read.
    RETURN_IF_ERROR(LookAtState());
    RETURN_IF_ERROR(reader_.ReadMore([this](const LogLineRecord& line) { Take(line); }));
    output_.Flush();
    RETURN_IF_ERROR(output_.status());
    if (!options_.follow || ended_ || stopped_ || output_.done()) return ended_;
    if (!look_) Wait();
  }
}

absl::Status ShownLog::LookAtState() {
  // Lines may come thousands of times a second; the end is told by the supervisor's own, not by these looks.
  const absl::Time now = RealClock().Now();
  if (!look_ && now - looked_ < absl::Milliseconds(200)) return absl::OkStatus();
  look_ = false;
  looked_ = now;
  ASSIGN_OR_RETURN(RunRecord run, registry_.Run(id_));
  bool lost = false;
  if (!HasEnded(run.state) && !IsSupervised(run.state)) {
    ASSIGN_OR_RETURN(const std::vector<ExperimentId> all, ReconcileAloud(registry_, home_));
    lost = std::find(all.begin(), all.end(), id_) != all.end();
    ASSIGN_OR_RETURN(run, registry_.Run(id_));  // it may just have ended
  }
  ended_ = lost || (HasEnded(run.state) && !RunLock::IsHeld(home_.lock(id_)));
  WatchSupervisor(run.supervisor);
  return absl::OkStatus();
}

// Until a run of a grid has its turn, only the grid's supervisor is there.
bool ShownLog::IsSupervised(RunState state) const {
  if (RunLock::IsHeld(home_.lock(id_))) return true;
  const bool waits = id_.run != 0 && (state == RunState::kCreated || state == RunState::kPending);
  return waits && RunLock::IsHeld(home_.lock({id_.number, 0}));
}

void ShownLog::WatchSupervisor(pid_t pid) {
  if (pid <= 0 || pid == supervisor_) return;
  ForgetSupervisor();
  supervisor_ = pid;
  supervisor_fd_ = OpenPidFd(pid);
}

void ShownLog::ForgetSupervisor() {
  if (supervisor_fd_ >= 0) close(supervisor_fd_);
  supervisor_fd_ = -1;
}

// Which names lines will have: those of the file's tasks, of a grid the last run's, which are the longest.
absl::Status ShownLog::FindNames() {
  ASSIGN_OR_RETURN(const NewExperiment asked, registry_.Specification(id_.number));
  ASSIGN_OR_RETURN(const ExperimentFile file, ParseExperimentFile(asked.file_text, asked.file_name));
  const ExperimentId longest = runs_ > 0 ? ExperimentId{id_.number, runs_} : id_;
  std::vector<TaskId> tasks = TasksOfFile(file);
  if (!file.install.empty()) tasks.push_back({kBuildJob, 0});
  const std::vector<std::string>& only = options_.only;
  if (only.empty()) width_ = longest.ToString().size();
  for (const TaskId& task : tasks) {
    const bool wanted = only.empty() || std::find(only.begin(), only.end(), LabelOf(task)) != only.end();
    if (wanted) width_ = std::max(width_, FullName(longest, task).size());
  }
  return absl::OkStatus();
}

void ShownLog::Take(const LogLineRecord& line) {
  // A new state tells who supervises it now, and that is who tells the end: without it a short experiment would seem to
  // last until the next look.
  if (line.kind == LogKind::kState && line.task == kExperimentLog) look_ = true;
  // "4.worker.1"; of the experiment's own lines "4", or "4.3" of a run.
  std::string name = absl::StrCat(id_.ToString(), ".", AbslView(line.task));
  const std::string own = absl::StrCat(".", kExperimentLog);
  if (absl::EndsWith(name, own)) name.resize(name.size() - own.size());
  width_ = std::max(width_, name.size());
  output_.Put(options_.json ? JsonLine(name, line) : ShownLine(name, width_, line, options_.color));
  if (output_.done()) reader_.Pause();
}

void ShownLog::Wait() {
  pollfd fds[] = {{reader_.wake_fd(), POLLIN, 0},
                  {supervisor_fd_, POLLIN, 0},
                  {options_.stop_fd, POLLIN, 0},
                  {STDOUT_FILENO, 0, 0}};  // only whether its reader is there
  const bool is_told = reader_.wake_fd() >= 0 && supervisor_fd_ >= 0;
  const int ready = poll(fds, 4, is_told ? 1000 : 100);
  if (ready < 0) return;
  if (ready == 0 || fds[1].revents != 0) look_ = true;
  if (fds[1].revents != 0) ForgetSupervisor();
  if (fds[2].revents != 0) stopped_ = true;
  if (fds[3].revents != 0) output_.NoteGone();
}

}  // namespace

absl::StatusOr<OpenedHome> OpenHome() {
  const std::optional<std::string> path = ReadEnvironment().home;
  if (!path.has_value())
    return WrongConfigurationError("neither MUSTER_HOME nor HOME is set: set MUSTER_HOME to a folder for experiments");
  ASSIGN_OR_RETURN(Home home, Home::Open(*path, PosixFileSystem()));
  ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Open(home, RealClock()));
  RETURN_IF_ERROR(ReconcileAloud(*registry, home).status());
  return OpenedHome{std::move(home), std::move(registry)};
}

absl::StatusOr<ExperimentName> NameOrLast(Registry& registry, const std::string& text) {
  if (!text.empty()) {
    ASSIGN_OR_RETURN(ExperimentName name, ExperimentName::Parse(text));
    RETURN_IF_ERROR(registry.Run(name.id).status());
    return name;
  }
  ASSIGN_OR_RETURN(const std::string project, ProjectHere());
  ASSIGN_OR_RETURN(const ExperimentId last, registry.Last(project));
  return ExperimentName{last, std::nullopt};
}

int ReportError(const std::string& command, const absl::Status& status) {
  // An experiment file may have several mistakes, a line each.
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) UsageError(command, absl::Status(status.code(), line));
  if (lines.empty()) UsageError(command, absl::Status(status.code(), absl::StatusCodeToString(status.code())));
  const bool wrong = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                     absl::IsFailedPrecondition(status) || IsWrongConfiguration(status);
  return wrong ? kExitUsage : 1;
}

std::string ShownTime(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

std::string ShownAge(absl::Duration age) {
  age = std::max(age, absl::ZeroDuration());
  if (age < absl::Minutes(1)) return absl::StrCat(absl::ToInt64Seconds(age), " s");
  if (age < absl::Hours(1)) return absl::StrCat(absl::ToInt64Minutes(age), " min");
  if (age < absl::Hours(24)) return absl::StrCat(absl::ToInt64Hours(age), " h");
  return absl::StrCat(absl::ToInt64Hours(age) / 24, " d");
}

absl::StatusOr<bool> ShowLog(const OpenedHome& opened, const ExperimentId& id, const FollowOptions& options) {
  ASSIGN_OR_RETURN(const RunRecord record, opened.registry->Run(id));
  return ShownLog(opened, id, record, options).Show();
}

}  // namespace muster
