#include "apps/muster/experiment/experiment_command.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/experiment/submit_experiment.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/shown_host.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/engines/command/held_hosts.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/spec/go_on_command.h"

namespace muster {

absl::StatusOr<std::vector<ExperimentId>> ReconcileAloud(Registry& registry) {
  ASSIGN_OR_RETURN(std::vector<ExperimentId> lost, registry.Reconcile());
  const std::set<ExperimentId> all(lost.begin(), lost.end());
  for (const ExperimentId& id : lost) {
    if (id.run != 0 && all.contains({id.number, 0})) continue;
    const absl::StatusOr<RunRecord> run = registry.Run(id);
    const std::string reason =
        run.ok() ? absl::StrCat(run->reason, GoOnText(registry, *run)) : "its supervisor is gone";
    std::fprintf(stderr, "muster: experiment %s failed: %s\n", id.ToString().c_str(), reason.c_str());
  }
  return lost;
}

namespace {

// Returns whether `run` is `whole`, or a run of that grid.
bool IsPartOf(const ExperimentId& run, const ExperimentId& whole) {
  return run == whole || (whole.run == 0 && run.number == whole.number);
}

absl::StatusOr<std::string> PathOfHome() {
  const std::optional<std::string> path = ReadEnvironment().home;
  if (path.has_value()) return *path;
  return WrongConfigurationError("neither MUSTER_HOME nor HOME is set: set MUSTER_HOME to a folder for experiments");
}

// Finds what is left of lost runs. A guard that is alive is about to end it.
absl::StatusOr<std::map<ExperimentId, LeftProcesses>> FindLeft(Registry& registry) {
  std::map<ExperimentId, LeftProcesses> left;
  ASSIGN_OR_RETURN(const std::vector<Registry::LeftRun> runs, registry.LeftRuns());
  if (runs.empty()) return left;
  std::set<std::string> run_ids;
  for (const Registry::LeftRun& run : runs) {
    AwaitGuard(run.run_id);
    run_ids.insert(run.run_id);
  }
  const std::map<std::string, std::vector<pid_t>> found = ProcessesOfRuns(run_ids);
  for (const Registry::LeftRun& run : runs) {
    const auto pids = found.find(run.run_id);
    if (pids == found.end()) {
      RETURN_IF_ERROR(registry.ForgetProcesses(run.id));
    } else {
      left[run.id] = {run.run_id, pids->second};
    }
  }
  return left;
}

absl::StatusOr<OpenedHome> OpenRegistryOf(const std::function<absl::StatusOr<Home>()>& open) {
  const PrivateFiles private_files;
  const absl::StatusOr<Home> home = open();
  RETURN_IF_ERROR(home.status());
  ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Open(*home, RealClock()));
  const absl::Status reconciled = ReconcileAloud(*registry).status();
  if (!reconciled.ok()) UsageError("", reconciled);
  GiveBackLeftAloud(*home);
  auto jobs = std::make_unique<JobWatch>(*home, *registry, [](const std::string& name, const std::string& at) {
    return MakeJobEngine(name, at, OwnEnvironment());
  });
  StartCollectors(*home, {.muster_command = OwnProgram(), .users_umask = private_files.users_umask()});
  LookAtJobsAloud(*jobs);
  OpenedHome opened{*home, std::move(registry), std::move(jobs), {}};
  auto left = FindLeft(*opened.registry);
  if (left.ok()) {
    opened.left = *std::move(left);
  } else {
    UsageError("", left.status());
  }
  for (const auto& [id, processes] : opened.left)
    std::fprintf(stderr, "muster: experiment %s has lost its supervisor%s (%s)\n", id.ToString().c_str(),
                 LeftText(opened, id).c_str(), absl::StrJoin(processes.pids, ", ").c_str());
  return opened;
}

}  // namespace

void GiveBackLeftAloud(const Home& home) {
  const auto end_left = [](const std::string& run_id) { KillProcessesOfRun(run_id); };
  for (const std::string& line : GiveBackLeft(home.held(), OwnEnvironment(), end_left, RealClock()))
    std::fprintf(stderr, "muster: %s\n", line.c_str());
}

absl::StatusOr<OpenedHome> OpenHome() {
  ASSIGN_OR_RETURN(const std::string path, PathOfHome());
  return OpenRegistryOf([&path] { return Home::Open(path, PosixFileSystem()); });
}

absl::StatusOr<OpenedHome> OpenHomeToRead() {
  ASSIGN_OR_RETURN(const std::string path, PathOfHome());
  return OpenRegistryOf([&path] { return Home::OpenToRead(path, PosixFileSystem()); });
}

void LookAtJobsAloud(JobWatch& jobs, int64_t number) {
  for (const std::string& line : jobs.Look(number)) std::fprintf(stderr, "muster: %s\n", line.c_str());
}

bool EndLeftProcesses(OpenedHome& opened, const ExperimentId& id) {
  int ended = 0;
  std::erase_if(opened.left, [&](const auto& left) {
    if (!IsPartOf(left.first, id)) return false;
    ended += KillProcessesOfRun(left.second.run_id);
    const absl::Status forgotten = opened.registry->ForgetProcesses(left.first);
    if (!forgotten.ok()) UsageError("", forgotten);
    return true;
  });
  if (ended > 0)
    std::fprintf(stderr, "muster: ended %d process%s that experiment %s had left behind\n", ended,
                 ended == 1 ? "" : "es", id.ToString().c_str());
  return ended > 0;
}

std::string LeftText(const OpenedHome& opened, const ExperimentId& id) {
  size_t count = 0;
  for (const auto& [run, processes] : opened.left)
    if (IsPartOf(run, id)) count += processes.pids.size();
  if (count == 0) return "";
  return absl::StrCat("; ", count, count == 1 ? " process of it still runs" : " processes of it still run",
                      ": muster kill ", ShownId(id), count == 1 ? " ends it" : " ends them");
}

std::string GoOnText(Registry& registry, const RunRecord& run) {
  if (!WasLost(run)) return "";
  const absl::StatusOr<NewExperiment> experiment = registry.Specification(run.id.number);
  return GoesOnBy(ShownId(run.id), experiment.ok() ? experiment->file_name : "");
}

absl::StatusOr<ExperimentName> NameOrLast(Registry& registry, const std::string& text) {
  if (!text.empty()) {
    ASSIGN_OR_RETURN(ExperimentName name, ExperimentName::Parse(text));
    RETURN_IF_ERROR(registry.Run(name.id).status());
    return name;
  }
  ASSIGN_OR_RETURN(const std::string project, ProjectHere());
  const absl::StatusOr<ExperimentId> last = registry.Last(project);
  if (absl::IsNotFound(last.status()))
    return absl::NotFoundError(absl::StrCat(last.status().message(), SupervisedElsewhereText()));
  RETURN_IF_ERROR(last.status());
  return ExperimentName{*last, std::nullopt};
}

absl::StatusOr<ExperimentName> NameOrLastHere(Registry& registry, const std::string& text) {
  if (!text.empty()) return NameOrLast(registry, text);
  ASSIGN_OR_RETURN(const std::string project, ProjectHere());
  if (!project.empty()) return NameOrLast(registry, text);
  const absl::StatusOr<ExperimentId> last = registry.Last("");
  return absl::InvalidArgumentError(absl::StrCat(
      "an id is needed here: this folder has no muster.yml, whose project's last experiment would be meant",
      last.ok() ? absl::StrCat(" (the last of all is ", ShownId(*last), ")") : ""));
}

std::string RefuseEmptyId(const std::string& id) {
  return id.empty() ? "an id can't be empty; leave it out for the last experiment" : "";
}

std::string ShownId(const ExperimentId& id) {
  return ShownHost().empty() ? id.ToString() : absl::StrCat(ShownHost(), ":", id.ToString());
}

int CommandExitCode(const absl::Status& error) {
  const bool wrong = absl::IsInvalidArgument(error) || absl::IsNotFound(error) || absl::IsFailedPrecondition(error) ||
                     IsWrongConfiguration(error);
  return wrong ? kExitUsage : 1;
}

int ReportError(const std::string& command, const absl::Status& status) {
  // An experiment file may have several mistakes, one per line.
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) UsageError(command, absl::Status(status.code(), line));
  if (lines.empty()) UsageError(command, absl::Status(status.code(), absl::StatusCodeToString(status.code())));
  return CommandExitCode(status);
}

std::string ShownTime(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

std::string ShownAge(absl::Duration age) {
  age = std::max(age, absl::ZeroDuration());
  if (age < absl::Minutes(1)) return absl::StrCat(absl::ToInt64Seconds(age), " s");
  if (age < absl::Hours(1)) return absl::StrCat(absl::ToInt64Minutes(age), " min");
  if (age < absl::Hours(24)) return absl::StrCat(absl::ToInt64Hours(age), " h");
  return absl::StrCat(absl::ToInt64Hours(age) / 24, " d");
}

}  // namespace muster
