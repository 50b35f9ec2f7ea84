#include "apps/muster/experiment/experiment_command.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/identity/environment.h"

namespace muster {

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

namespace {

absl::StatusOr<std::string> PathOfHome() {
  const std::optional<std::string> path = ReadEnvironment().home;
  if (path.has_value()) return *path;
  return WrongConfigurationError("neither MUSTER_HOME nor HOME is set: set MUSTER_HOME to a folder for experiments");
}

absl::StatusOr<OpenedHome> OpenRegistryOf(absl::StatusOr<Home> home) {
  RETURN_IF_ERROR(home.status());
  ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Open(*home, RealClock()));
  const absl::Status reconciled = ReconcileAloud(*registry, *home).status();
  if (!reconciled.ok()) UsageError("", reconciled);
  return OpenedHome{*std::move(home), std::move(registry)};
}

}  // namespace

absl::StatusOr<OpenedHome> OpenHome() {
  ASSIGN_OR_RETURN(const std::string path, PathOfHome());
  return OpenRegistryOf(Home::Open(path, PosixFileSystem()));
}

absl::StatusOr<OpenedHome> OpenHomeToRead() {
  ASSIGN_OR_RETURN(const std::string path, PathOfHome());
  return OpenRegistryOf(Home::OpenToRead(path, PosixFileSystem()));
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

std::string RefuseEmptyId(const std::string& id) {
  return id.empty() ? "an id can't be empty; leave it out for the last experiment" : "";
}

int ReportError(const std::string& command, const absl::Status& status) {
  // An experiment file may have several mistakes, one per line.
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

}  // namespace muster
