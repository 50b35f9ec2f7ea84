#include "apps/muster/experiment/submit_experiment.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "apps/muster/experiment/experiment_json.h"
#include "apps/muster/experiment/shown_log.h"
#include "apps/muster/experiment/submit_jobs.h"
#include "apps/muster/terminal/color_flag.h"
#include "apps/muster/terminal/interrupt_fd.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/shown_host.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/detach.h"
#include "muster/launch/experiment/handover.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/jobs/job_wait.h"
#include "muster/launch/jobs/leave_far.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/results/grid_report.h"

namespace muster {
namespace {

// What an agent takes to end its tasks when its grace is over, and a bit.
constexpr absl::Duration kEndOnHosts = absl::Seconds(5);

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

struct Started {
  ExperimentId id;
  std::unique_ptr<LogReader> log;           // positioned at the start of this attempt's lines
  absl::Time since = absl::InfinitePast();  // or they begin here
};

// Waits until the tasks of a lost supervisor have ended on their hosts, which they do when they have heard nothing of
// it for the grace; otherwise two attempts would write the same checkpoints.
absl::Status AwaitEndOnHosts(Registry& registry, const RunRecord& former, const InterruptFd& interrupt) {
  ASSIGN_OR_RETURN(const NewExperiment specification, registry.Specification(former.id.number));
  const HostSetting& where = specification.options.hosts;
  if (where.hosts.empty() && !where.command.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<RunRecord> runs, registry.Runs(former.id.number));
  runs.push_back(former);
  absl::Time lost = absl::InfinitePast();
  for (const RunRecord& run : runs)
    if (WasLost(run)) lost = std::max(lost, run.ended);
  const absl::Duration left = lost + where.grace + kEndOnHosts - RealClock().Now();
  if (left <= absl::ZeroDuration()) return absl::OkStatus();
  std::fprintf(stderr, "muster: its tasks on hosts may still run without their supervisor: waiting %s\n",
               absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))).c_str());
  pollfd stop = {interrupt.fd(), POLLIN, 0};
  if (poll(&stop, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) == 0) return absl::OkStatus();
  return absl::CancelledError("interrupted; nothing was started");
}

void ForgetJob(const OpenedHome& opened, const ExperimentId& id) {
  RemoveJobFile(opened.home.job(id));
  for (const std::string& file : {opened.home.other_home(id), FarFile(opened.home, id, kFarLeftName)})
    unlink(file.c_str());
  RemoveHandover(opened.home, id);
}

// Those of an earlier attempt, which may have been in jobs.
absl::Status ForgetJobs(const OpenedHome& opened, const ExperimentId& id) {
  ForgetJob(opened, id);
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
  for (int i = 1; i <= run.runs; ++i) ForgetJob(opened, {id.number, i});
  return absl::OkStatus();
}

// Waits until all output of a run that has ended is here, or of a grid's.
absl::Status AwaitOutput(const OpenedHome& opened, const RunRecord& former) {
  for (int i = 0; i <= former.runs; ++i)
    RETURN_IF_ERROR(LeaveFar(opened.home, *opened.jobs, i == 0 ? former.id : ExperimentId{former.id.number, i},
                             RealClock(), absl::SleepFor));
  return absl::OkStatus();
}

// Starts the supervisor, or submits the job that will start it.
absl::Status StartOrSubmit(OpenedHome& opened, const ExperimentId& id, RunLock lock, const NewExperiment& experiment,
                           const SupervisorStart& supervisor) {
  const auto before = ReadJobFile(opened.home.job(id));
  RETURN_IF_ERROR(ForgetJobs(opened, id));
  if (experiment.options.hosts.job_engine().empty())
    return StartSupervisor(opened.home, id, std::move(lock), supervisor).status();
  const absl::Status submitted =
      SubmitJobs(opened, id, experiment,
                 {.muster = supervisor.muster_command,
                  .users_umask = supervisor.users_umask,
                  .ending_seconds = before.ok() && before->has_value() ? (*before)->ending_seconds : 0});
  if (submitted.ok()) return absl::OkStatus();
  const absl::Status written = opened.registry->EndLost(
      id, {.reason = std::string(submitted.message()), .exit_code = CommandExitCode(submitted)});
  if (written.ok()) return submitted;
  return absl::Status(written.code(),
                      absl::StrCat(submitted.message(), "; experiment ", ShownId(id),
                                   " has failed for that, which can't be written down now: ", written.message()));
}

// An experiment of which the engine has taken no job leaves nothing behind but its number.
absl::Status RemoveRefused(const OpenedHome& opened, int64_t number) {
  RETURN_IF_ERROR(opened.registry->Forget(number));
  std::error_code gone;
  std::filesystem::remove_all(opened.home.folder({.number = number}), gone);
  return absl::OkStatus();
}

// The supervisor of an attempt that has ended holds its lock for a moment more, as it takes its leave.
absl::StatusOr<RunLock> TakeLockOfEnded(const OpenedHome& opened, const ExperimentId& id) {
  constexpr absl::Duration kLeavePatience = absl::Seconds(10);
  constexpr int kLockPauseMs = 50;
  for (const absl::Time until = RealClock().Now() + kLeavePatience;; poll(nullptr, 0, kLockPauseMs)) {
    absl::StatusOr<RunLock> lock = RunLock::Take(opened.home.lock(id));
    if (!absl::IsFailedPrecondition(lock.status()) || RealClock().Now() >= until) return lock;
    ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
    if (!HasEnded(run.state)) return lock;
  }
}

absl::StatusOr<Started> StartAgain(OpenedHome& opened, const Submission& submission, const SupervisorStart& supervisor,
                                   const InterruptFd& interrupt) {
  const ExperimentId id = *submission.again;
  const absl::Status goes_on = absl::FailedPreconditionError(
      absl::StrCat("experiment ", ShownId(id), " is still running; muster kill ", ShownId(id), " ends it"));
  absl::StatusOr<RunLock> lock = TakeLockOfEnded(opened, id);
  if (absl::IsFailedPrecondition(lock.status())) return goes_on;
  RETURN_IF_ERROR(lock.status());
  // Otherwise two attempts would write the same checkpoints.
  EndLeftProcesses(opened, id);
  ASSIGN_OR_RETURN(const RunRecord former, opened.registry->Run(id));
  RETURN_IF_ERROR(AwaitEndOnHosts(*opened.registry, former, interrupt));
  RETURN_IF_ERROR(AwaitOutput(opened, former));
  ASSIGN_OR_RETURN(const std::unique_ptr<JobEngine> engine,
                   JobEngineOf(submission.experiment.options.hosts, OwnEnvironment()));
  RETURN_IF_ERROR(CheckOutputIsFound(opened.home, *opened.registry, former, submission.experiment, engine.get()));
  std::unique_ptr<LogReader> log = OpenLog(opened, former);
  RETURN_IF_ERROR(PassOverAll(*log));
  unlink(opened.home.refused(id).c_str());
  RETURN_IF_ERROR(opened.registry->Restart(id, submission.experiment));
  RETURN_IF_ERROR(StartOrSubmit(opened, id, *std::move(lock), submission.experiment, supervisor));
  return Started{id, std::move(log)};
}

absl::StatusOr<Started> Start(OpenedHome& opened, const Submission& submission, const InterruptFd& interrupt) {
  const PrivateFiles private_files;
  const SupervisorStart supervisor = {.muster_command = OwnProgram(), .users_umask = private_files.users_umask()};
  if (submission.again.has_value()) return StartAgain(opened, submission, supervisor, interrupt);
  std::optional<RunLock> lock;
  const auto take_lock = [&](const ExperimentId& id) -> absl::Status {
    RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(opened.home.folder(id)));
    ASSIGN_OR_RETURN(RunLock taken, RunLock::Take(opened.home.lock(id)));
    lock.emplace(std::move(taken));
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const int64_t number, opened.registry->Create(submission.experiment, take_lock));
  const ExperimentId id = {.number = number};
  const absl::Status started = StartOrSubmit(opened, id, *std::move(lock), submission.experiment, supervisor);
  const bool refused = absl::IsInvalidArgument(started) || absl::IsNotFound(started);
  if (refused && !submission.experiment.options.hosts.job_engine().empty())
    RETURN_IF_ERROR(RemoveRefused(opened, number));
  RETURN_IF_ERROR(started);
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
  return Started{id, OpenLog(opened, run)};
}

int ExitCodeOf(const RunRecord& run) {
  if (run.state == RunState::kFinished) return 0;
  if (run.state == RunState::kKilled) return kExitOfKilled;
  return run.exit_code != 0 ? run.exit_code : 1;
}

// Returns whether it has failed before any task began for hosts that can't be used. The log, which has just been shown,
// has a line for each of them then.
bool LogHasReason(Registry& registry, const RunRecord& run) {
  const auto tasks = registry.Tasks(run.id);
  return run.state == RunState::kFailed && run.exit_code == kExitUsage && tasks.ok() && !tasks->empty() &&
         std::none_of(tasks->begin(), tasks->end(), [](const TaskRecord& task) { return task.exit.has_value(); });
}

std::string EndText(Registry& registry, const RunRecord& run) {
  // The start of another attempt is unknown, because `created` is that of the first one.
  const std::string after = run.attempt > 1 ? "" : absl::StrCat(" after ", ShownAge(run.ended - run.created));
  // A run that hasn't begun has no output.
  const std::string output = run.output_dir.empty() ? "" : absl::StrCat("\n  output: ", run.output_dir);
  const std::string on_host = output.empty() || ShownHost().empty() ? "" : " on " + ShownHost();
  const std::string reason = run.reason.empty()            ? ""
                             : LogHasReason(registry, run) ? ": nothing was started; its log says why"
                                                           : absl::StrCat(": ", run.reason);
  return absl::StrCat("experiment ", ShownId(run.id), ": ", std::string(Name(run.state)), after, reason,
                      GoOnText(registry, run), output, on_host, "\n");
}

// `why`: Home::refused.
std::string RefusedText(const RunRecord& run, const std::string& why) {
  return absl::StrCat("experiment ", ShownId(run.id), ": this attempt was refused, and nothing was started: ", why,
                      "\n  it is ", std::string(Name(run.state)), " as before\n");
}

// "Experiment 4: 9 runs, 2 at a time".
absl::StatusOr<std::string> GridTitle(Registry& registry, const ExperimentId& id, int concurrency) {
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(id.number));
  const auto finished =
      std::count_if(runs.begin(), runs.end(), [](const RunRecord& run) { return run.state == RunState::kFinished; });
  return absl::StrCat(
      "Experiment ", ShownId(id), ": ", runs.size(), " runs, ", concurrency, " at a time",
      finished > 0 ? absl::StrCat("; ", finished, " of them ", finished == 1 ? "has" : "have", " finished before") : "",
      "\n");
}

absl::Status PrintResults(const OpenedHome& opened, const RunRecord& grid, const std::string& metric) {
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, opened.registry->Runs(grid.id.number));
  std::vector<GridRow> rows;
  rows.reserve(runs.size());
  for (const RunRecord& run : runs) rows.push_back({run, ReadMetrics(run.output_dir)});
  absl::StatusOr<GridReportOptions> options = ResolveMetric(rows, metric, std::nullopt);
  if (!options.ok()) {
    std::fprintf(stderr, "muster: %s\n", std::string(options.status().message()).c_str());
    options = GridReportOptions();
  }
  Print(absl::StrCat("\n", GridTable(std::move(rows), *options)));
  return absl::OkStatus();
}

absl::StatusOr<int> FollowToEnd(const OpenedHome& opened, const Started& started, const ShowFlags& flags,
                                const InterruptFd& interrupt) {
  const ExperimentId& id = started.id;
  FollowOptions options = {
      .since = started.since, .reader = started.log.get(), .json = flags.json, .stop_fd = interrupt.fd()};
  ASSIGN_OR_RETURN(options.color, WantsColor("auto", STDOUT_FILENO));
  ASSIGN_OR_RETURN(const bool ended, ShowLog(opened, id, options));
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
  if (ended) AwaitFetched(opened.home, run, interrupt.fd());
  if (flags.json) {
    Print(OneLineJson(JsonOf(run)) + "\n");
    if (ended && PosixFileSystem().Exists(opened.home.refused(id))) return kExitUsage;
    return ended ? ExitCodeOf(run) : 0;
  }
  if (!ended) {
    ASSIGN_OR_RETURN(const NewExperiment specification, opened.registry->Specification(id.number));
    const bool waits = WaitsForSubmission(opened.home, run);
    const JobStage stage = waits                             ? JobStage::kNone
                           : run.state == RunState::kCreated ? JobStage::kSubmitted
                                                             : JobStage::kBegun;
    const std::string text = GoesOnText(ShownHost(), id.ToString(), specification.options.hosts, stage);
    std::fputs(absl::StrCat("\n", text).c_str(), stderr);
    return 0;
  }
  if (const auto refused = PosixFileSystem().ReadFile(opened.home.refused(id)); refused.ok()) {
    std::fputs(RefusedText(run, *refused).c_str(), stderr);
    return kExitUsage;
  }
  if (run.runs > 0) RETURN_IF_ERROR(PrintResults(opened, run, flags.metric));
  std::fputs(EndText(*opened.registry, run).c_str(), stderr);
  return ExitCodeOf(run);
}

}  // namespace

void AddShowFlags(CLI::App& command, ShowFlags& flags) {
  command.add_flag("-d,--detach", flags.detach, "Start it, print its id, and return at once");
  command.add_option("--metric", flags.metric, "The metric that sorts a grid's results, e.g. test_accuracy")
      ->type_name("NAME");
  command.add_flag("--json", flags.json,
                   "Print one JSON object per line: each line of the logs, and the experiment itself last");
}

absl::StatusOr<std::string> SyncProject(const std::string& folder, const Home& home, bool quiet) {
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const ProjectFiles files, ListProject(folder, {home.path()}));
  const std::string title = SyncTitle(files) + "...";
  if (!quiet) Print(title);
  const bool terminal = !quiet && isatty(STDOUT_FILENO);
  const absl::StatusOr<std::string> hash = StoreTree(folder, files, home.trees(), [&](int64_t bytes) {
    if (terminal && files.bytes > 0) Print(absl::StrCat("\r", title, " ", 100 * bytes / files.bytes, " %"));
  });
  // Overwrites the line with the percentage on a terminal.
  if (terminal && hash.ok()) Print(absl::StrCat("\r", title, "done  \n"));
  if (!quiet && !terminal && hash.ok()) Print("done\n");
  if (!quiet && !hash.ok()) Print("\n");
  return hash;
}

std::string OwnProgram() {
  std::error_code no_proc;
  return std::filesystem::read_symlink("/proc/self/exe", no_proc).string();
}

std::string SleepText(const std::string& host, const HostSetting& hosts, bool has_no_job) {
  if (!host.empty()) return absl::StrCat(host, " supervises it: this machine may sleep or go");
  if (hosts.spark.has_value())
    return "the job's driver and its supervisor are on this machine, which must stay on; this terminal may go";
  if (has_no_job)
    return "this machine must stay on until all of it is submitted, which a process here does; this terminal may go";
  if (!hosts.job_engine().empty()) return "its supervisor is in the job: this machine may sleep or go";
  if (!hosts.is_elsewhere()) return "";
  return absl::StrCat("its supervisor is on this machine: when that is off or asleep for longer than the grace of ",
                      absl::FormatDuration(hosts.grace),
                      ", the tasks on hosts end; muster train --supervisor HOST keeps it on HOST");
}

std::string GoesOnText(const std::string& host, const std::string& id, const HostSetting& hosts, JobStage stage) {
  const std::string name = host.empty() ? id : absl::StrCat(host, ":", id);
  const std::string sleep = SleepText(host, hosts, stage == JobStage::kNone);
  const bool runs = hosts.job_engine().empty() || stage == JobStage::kBegun;
  return absl::StrCat("experiment ", name,
                      runs                       ? " is running"
                      : stage == JobStage::kNone ? " waits to be submitted"
                                                 : " is submitted",
                      host.empty() ? "" : ", and " + sleep, "; muster logs ", name, " -f shows it, muster kill ", name,
                      " ends it", host.empty() && !sleep.empty() ? "; " + sleep : "", "\n");
}

absl::StatusOr<int> FollowStarted(const OpenedHome& opened, const ExperimentId& id, absl::Time since,
                                  const ShowFlags& flags) {
  const InterruptFd interrupt;
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
  ASSIGN_OR_RETURN(const NewExperiment specification, opened.registry->Specification(id.number));
  if (run.runs > 0 && !flags.json) {
    const auto file = ParseExperimentFile(specification.file_text, specification.file_name);
    ASSIGN_OR_RETURN(const std::string title, GridTitle(*opened.registry, id, file.ok() ? file->concurrency : 1));
    Print(title);
  }
  return FollowToEnd(opened, {.id = id, .log = OpenLog(opened, run), .since = since}, flags, interrupt);
}

absl::StatusOr<int> Submit(OpenedHome& opened, const Submission& submission, const ShowFlags& flags) {
  // From here on Ctrl-C only stops showing the logs, so that it can't leave an experiment without its supervisor.
  const InterruptFd interrupt;
  const absl::Time submitted = RealClock().Now();
  ASSIGN_OR_RETURN(const Started started, Start(opened, submission, interrupt));
  static_cast<void>(opened.registry->KnowFolders());  // while its supervisor begins; the next command would do it
  const ExperimentId& id = started.id;
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
  const bool waits = WaitsForSubmission(opened.home, run);
  if (!flags.detach) {
    if (submission.experiment.grid && !flags.json) {
      ASSIGN_OR_RETURN(const std::string title, GridTitle(*opened.registry, id, submission.concurrency));
      Print(title);
    }
    const std::string sleep = SleepText(ShownHost(), submission.experiment.options.hosts, waits);
    if (!sleep.empty() && !flags.json) std::fputs(absl::StrCat("muster: ", sleep, "\n").c_str(), stderr);
    return FollowToEnd(opened, started, flags, interrupt);
  }
  if (!flags.json) {
    Print(GoesOnText(ShownHost(), id.ToString(), submission.experiment.options.hosts,
                     waits ? JobStage::kNone : JobStage::kSubmitted));
    return 0;
  }
  nlohmann::json object = JsonOf(run);
  object["submitted_micros"] = absl::ToUnixMicros(submitted);
  Print(OneLineJson(object) + "\n");
  return 0;
}

}  // namespace muster
