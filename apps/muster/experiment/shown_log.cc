#include "apps/muster/experiment/shown_log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/experiment/said_wait.h"
#include "apps/muster/terminal/log_output.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/task_log/shown_line.h"

namespace muster {
namespace {

// Between two questions to the engine of a job.
constexpr absl::Duration kLookAtJob = absl::Seconds(3);
// A supervisor that hasn't renewed its state for longer may be gone.
constexpr absl::Duration kSilence = absl::Seconds(15);

// The state of one call of ShowLog.
class ShownLog {
 public:
  ShownLog(const OpenedHome& opened, const ExperimentId& id, LogReader& reader, const FollowOptions& options)
      : home_(opened.home),
        registry_(*opened.registry),
        jobs_(*opened.jobs),
        id_(id),
        options_(options),
        reader_(reader),
        output_(options.stop_fd) {}
  ~ShownLog() { ForgetSupervisor(); }
  ShownLog(const ShownLog&) = delete;
  ShownLog& operator=(const ShownLog&) = delete;

  absl::StatusOr<bool> Show();

 private:
  absl::Status CheckState();
  // Says why the run waits for its job, and finds that the job has ended without a word of its supervisor.
  void LookAtJob(const RunRecord& run);
  void WatchSupervisor(pid_t pid);
  void ForgetSupervisor();
  void Take(const LogLineRecord& line);
  void Wait();

  // Constant after construction.
  const Home& home_;
  Registry& registry_;
  JobWatch& jobs_;
  const ExperimentId id_;
  const FollowOptions& options_;
  // Whether a line that is still being overwritten is shown: in a file that follows the log, each state would be a
  // line.
  const bool shows_live_ = !options_.json && (!options_.follow || isatty(STDOUT_FILENO) == 1);

  LogReader& reader_;
  LogOutput output_;
  size_t width_ = 0;  // of the names
  bool look_ = true;  // check the state now, however recent the last check
  absl::Time looked_ = absl::InfinitePast();
  absl::Time looked_at_job_ = absl::InfinitePast();
  SaidWait said_wait_;
  bool ended_ = false;  // nothing will be written any more
  bool stopped_ = false;
  pid_t supervisor_ = 0;    // the last one watched
  int supervisor_fd_ = -1;  // readable when it has ended; -1: not watched
};

absl::StatusOr<bool> ShownLog::Show() {
  ASSIGN_OR_RETURN(const RunRecord run, registry_.Run(id_));
  ASSIGN_OR_RETURN(width_, WidthOfNames(registry_, run, options_.only));
  for (;;) {
    // Must come first, so that everything written before the end is read.
    RETURN_IF_ERROR(CheckState());
    RETURN_IF_ERROR(reader_.ReadMore([this](const LogLineRecord& line) { Take(line); }));
    if (shows_live_) reader_.ReadLive([this](const LogLineRecord& line) { Take(line); });
    output_.Flush();
    RETURN_IF_ERROR(output_.status());
    if (!options_.follow || ended_ || stopped_ || output_.done()) return ended_;
    if (!look_) Wait();
  }
}

absl::Status ShownLog::CheckState() {
  // Lines may come thousands of times a second, so this checks only now and then; the supervisor's end is noticed by
  // its descriptor.
  const absl::Time now = RealClock().Now();
  if (!look_ && now - looked_ < absl::Milliseconds(200)) return absl::OkStatus();
  look_ = false;
  looked_ = now;
  ASSIGN_OR_RETURN(RunRecord run, registry_.Run(id_));
  if (!HasEnded(run.state) && now - looked_at_job_ >= kLookAtJob) {
    looked_at_job_ = now;
    LookAtJob(run);
    ASSIGN_OR_RETURN(run, registry_.Run(id_));
  }
  bool lost = false;
  // Another machine's locks and process numbers say nothing here.
  const bool is_here = registry_.IsHere(run);
  if (is_here && !HasEnded(run.state) &&
      !RunLock::IsHeld(home_.lock(id_))) {  // lost, or waiting for its turn in a grid
    ASSIGN_OR_RETURN(const std::vector<ExperimentId> all, ReconcileAloud(registry_));
    lost = std::find(all.begin(), all.end(), id_) != all.end();
    ASSIGN_OR_RETURN(run, registry_.Run(id_));  // it may have ended meanwhile
  }
  ended_ = lost || (HasEnded(run.state) && (!is_here || !RunLock::IsHeld(home_.lock(id_))));
  if (is_here) WatchSupervisor(run.supervisor);
  return absl::OkStatus();
}

void ShownLog::LookAtJob(const RunRecord& run) {
  const auto job = ReadJobFile(home_.job(id_));
  if (!job.ok() || !job->has_value()) return;
  if (options_.follow && IsFar(home_, id_)) WantFar(home_, id_);
  // A supervisor that lives says itself what happens, but one in a pod doesn't see why other pods don't start.
  const bool may_wait = run.state == RunState::kCreated || (IsFar(home_, id_) && run.state == RunState::kPending);
  const bool is_silent = registry_.SinceRenewal(id_).value_or(absl::InfiniteDuration()) > kSilence;
  if (run.runs == 0 && !may_wait && !is_silent) return;
  LookAtJobsAloud(jobs_, id_.number);
  const RunInJob* const in_job = jobs_.Find(id_);
  if (in_job == nullptr || !options_.follow || !said_wait_.IsNews(in_job->lasting_text())) return;
  // Before an engine has looked at a job, it gives no reason.
  const bool says_why = !in_job->news.reason.empty() || absl::StrContains(in_job->lasting_text(), "(");
  if (in_job->news.phase == JobPhase::kWaits && says_why)
    std::fprintf(stderr, "experiment %s waits: %s\n", ShownId(id_).c_str(), in_job->text.c_str());
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

void ShownLog::Take(const LogLineRecord& line) {
  // A new state shows who supervises the experiment now, whose end has to be watched; otherwise a short experiment
  // would seem to last until the next check.
  if (line.kind == LogKind::kState && line.task == kExperimentLog) look_ = true;
  if (line.task == kExperimentLog) said_wait_.OnSupervisorsLine(line.text);
  if (line.when < options_.since || (!options_.json && !IsShown(line))) return;
  const std::string name = NameOfLine(id_, line);
  width_ = std::max(width_, name.size());
  output_.Put(options_.json ? JsonLine(name, line) : ShownLine(name, width_, line, options_.color));
  if (output_.done()) reader_.Pause();
}

void ShownLog::Wait() {
  pollfd fds[] = {{reader_.wake_fd(), POLLIN, 0},
                  {supervisor_fd_, POLLIN, 0},
                  {options_.stop_fd, POLLIN, 0},
                  {STDOUT_FILENO, 0, 0}};  // only whether its reader exists
  const bool is_told = reader_.wake_fd() >= 0 && supervisor_fd_ >= 0;
  const int ready = poll(fds, 4, is_told ? 1000 : 100);
  if (ready < 0) return;
  if (ready == 0 || fds[1].revents != 0) look_ = true;
  if (fds[1].revents != 0) ForgetSupervisor();
  if (fds[2].revents != 0) stopped_ = true;
  if (fds[3].revents != 0) output_.NoteGone();
}

}  // namespace

std::unique_ptr<LogReader> OpenLog(const OpenedHome& opened, const RunRecord& run,
                                   const std::vector<std::string>& only) {
  const Home& home = opened.home;
  std::vector<LogReader::Source> sources = {{home.logs(run.id), ""}};
  for (int i = 1; i <= run.runs; ++i) sources.push_back({home.logs({run.id.number, i}), absl::StrCat(i, ".")});
  const LogWatch::IsLocal nothing_is = [](const std::string& /*folder*/) { return false; };
  return std::make_unique<LogReader>(std::move(sources), only,
                                     opened.registry->is_shared() ? nothing_is : IsOnLocalFileSystem);
}

absl::Status PassOverAll(LogReader& reader) {
  reader.StartAtLast(0);
  return reader.ReadMore([](const LogLineRecord& /*line*/) {});
}

std::string NameOfLine(const ExperimentId& id, const LogLineRecord& line) {
  std::string name = absl::StrCat(id.ToString(), ".", AbslView(line.task));
  const std::string own = absl::StrCat(".", kExperimentLog);
  if (absl::EndsWith(name, own)) name.resize(name.size() - own.size());
  return name;
}

// Considers the names of the file's tasks (for a grid those of the last run, which are longest) and of the recorded
// tasks. A file that can't be parsed (another muster's) costs only the alignment.
absl::StatusOr<size_t> WidthOfNames(Registry& registry, const RunRecord& run, const std::vector<std::string>& only) {
  const ExperimentId longest = run.runs > 0 ? ExperimentId{run.id.number, run.runs} : run.id;
  std::vector<TaskId> tasks;
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> known, registry.Tasks(longest));
  for (const TaskRecord& task : known) tasks.push_back(task.task);
  ASSIGN_OR_RETURN(const NewExperiment asked, registry.Specification(run.id.number));
  const absl::StatusOr<ExperimentFile> file = ParseExperimentFile(asked.file_text, asked.file_name);
  if (file.ok()) {
    for (TaskId& task : TasksOfFile(*file)) tasks.push_back(std::move(task));
    if (!file->install.empty()) tasks.push_back({kBuildJob, 0});
  }
  size_t width = only.empty() ? longest.ToString().size() : 0;
  for (const TaskId& task : tasks) {
    const bool wanted = only.empty() || std::find(only.begin(), only.end(), LabelOf(task)) != only.end();
    if (wanted) width = std::max(width, FullName(longest, task).size());
  }
  return width;
}

absl::StatusOr<bool> ShowLog(const OpenedHome& opened, const ExperimentId& id, const FollowOptions& options) {
  if (options.reader != nullptr) return ShownLog(opened, id, *options.reader, options).Show();
  ASSIGN_OR_RETURN(const RunRecord record, opened.registry->Run(id));
  const std::unique_ptr<LogReader> reader = OpenLog(opened, record, options.only);
  if (options.last_lines >= 0) reader->StartAtLast(options.last_lines);
  return ShownLog(opened, id, *reader, options).Show();
}

}  // namespace muster
