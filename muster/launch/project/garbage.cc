#include "muster/launch/project/garbage.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/build.h"
#include "muster/launch/project/folder_lock.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/project/temporary_folder.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/run_state.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {
namespace {

// Between finding a tree and recording it in the registry lie milliseconds, unless a process is stopped meanwhile.
constexpr absl::Duration kGarbageYouth = absl::Hours(1);

// The state that all of one collection shares.
struct GarbageHunt {
  const Home& home;
  Registry& registry;
  const absl::Time now;
  const GarbageOptions& options;
  GarbageReport report;
};

std::string ExperimentsFolder(const Home& home) {
  return std::filesystem::path(home.folder({.number = 1})).parent_path();
}

// A folder into which things are moved before they are removed, at once and as a whole, so that nobody finds half of
// one. It is removed at the end.
class GarbageBin {
 public:
  GarbageBin(GarbageHunt& hunt, std::string parent) : hunt_(hunt), parent_(std::move(parent)) {}

  // Must be called before anything is thrown in; takes the lock of the folder for an instant.
  absl::Status Open() {
    if (hunt_.options.dry_run || folder_.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Make(parent_));
    folder_.emplace(std::move(folder));
    return absl::OkStatus();
  }
  absl::Status Throw(const std::string& name) {
    if (hunt_.options.dry_run) return absl::OkStatus();
    return Move(JoinPath(parent_, name), Thrown(name));
  }
  absl::Status TakeBack(const std::string& name) {
    if (hunt_.options.dry_run) return absl::OkStatus();
    return Move(Thrown(name), JoinPath(parent_, name));
  }
  void Report(GarbageKind kind, const std::string& name) {
    const int64_t bytes = BytesOfFolder(hunt_.options.dry_run ? JoinPath(parent_, name) : Thrown(name));
    const std::string folder = std::filesystem::path(parent_).filename();
    hunt_.report.removed.push_back({.kind = kind, .path = absl::StrCat(folder, "/", name), .bytes = bytes});
    hunt_.report.bytes += bytes;
  }
  void Empty() {
    if (!folder_.has_value()) return;
    const absl::Status removed = folder_->Remove();
    if (!removed.ok()) hunt_.report.problems.emplace_back(removed.message());
  }

 private:
  std::string Thrown(const std::string& name) const { return absl::StrCat(folder_->path(), "/", name); }
  static absl::Status Move(const std::string& from, const std::string& to) {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot move ", from, " to ", to));
  }

  GarbageHunt& hunt_;
  const std::string parent_;
  std::optional<TemporaryFolder> folder_;
};

// Takes the locks of an experiment and its runs, so that no supervisor starts meanwhile. FailedPrecondition: a
// supervisor is at work, or the experiment was just restarted.
absl::StatusOr<std::vector<RunLock>> LocksOfEnded(GarbageHunt& hunt, const ExperimentId& id) {
  std::vector<RunLock> locks;
  ASSIGN_OR_RETURN(const RunRecord record, hunt.registry.Run(id));
  std::vector<ExperimentId> ids = {id};
  if (record.runs > 0) {
    ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, hunt.registry.Runs(id.number));
    for (const RunRecord& run : runs) ids.push_back(run.id);
  }
  for (const ExperimentId& each : ids) {
    if (!PosixFileSystem().Exists(hunt.home.folder(each))) continue;
    ASSIGN_OR_RETURN(RunLock lock, RunLock::Take(hunt.home.lock(each)));
    locks.push_back(std::move(lock));
  }
  // With the locks held, the states can't change any more.
  for (const ExperimentId& each : ids) {
    ASSIGN_OR_RETURN(const RunRecord run, hunt.registry.Run(each));
    if (!HasEnded(run.state)) return absl::FailedPreconditionError(absl::StrCat(each.ToString(), " is still running"));
  }
  return locks;
}

// Returns whether it is gone.
absl::StatusOr<bool> ForgetExperiment(GarbageHunt& hunt, GarbageBin& bin, const ExperimentId& id) {
  const auto locks = LocksOfEnded(hunt, id);
  if (absl::IsFailedPrecondition(locks.status()) || absl::IsNotFound(locks.status())) return false;
  RETURN_IF_ERROR(locks.status());
  const std::string name = id.ToString();
  const bool has_folder = PosixFileSystem().Exists(hunt.home.folder(id));
  // Removes the folder first. If this process is killed now, the experiment can still be forgotten next time, and no
  // later experiment can find the folder of another.
  if (has_folder) RETURN_IF_ERROR(bin.Throw(name));
  const absl::Status forgotten = hunt.options.dry_run ? absl::OkStatus() : hunt.registry.Forget(id.number);
  if (!forgotten.ok()) {
    if (has_folder) RETURN_IF_ERROR(bin.TakeBack(name));
    return forgotten;
  }
  bin.Report(GarbageKind::kExperiment, name);
  return true;
}

// Returns the experiments that are old enough, the oldest first.
std::vector<ExperimentId> OldExperiments(const GarbageHunt& hunt, const std::vector<RunRecord>& records) {
  std::vector<const RunRecord*> ended;
  for (const RunRecord& record : records)
    if (HasEnded(record.state)) ended.push_back(&record);
  std::stable_sort(ended.begin(), ended.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->ended < b->ended; });
  const size_t kept = std::min(ended.size(), static_cast<size_t>(std::max(hunt.options.keep, 0)));
  ended.resize(ended.size() - kept);
  std::vector<ExperimentId> old;
  for (const RunRecord* record : ended)
    if (record->ended <= hunt.now - *hunt.options.experiments_older_than) old.push_back(record->id);
  return old;
}

// Returns the numbers of the experiments that are gone.
absl::StatusOr<std::set<int64_t>> ForgetExperiments(GarbageHunt& hunt, GarbageBin& bin) {
  std::set<int64_t> gone;
  if (!hunt.options.experiments_older_than.has_value()) return gone;
  ASSIGN_OR_RETURN(const std::vector<RunRecord> records, hunt.registry.List({}));
  const std::vector<ExperimentId> old = OldExperiments(hunt, records);
  if (!old.empty()) RETURN_IF_ERROR(bin.Open());
  for (const ExperimentId& id : old) {
    const auto forgotten = ForgetExperiment(hunt, bin, id);
    if (!forgotten.ok()) {
      hunt.report.problems.push_back(
          absl::StrCat("experiment ", id.ToString(), ": ", std::string(forgotten.status().message())));
    } else if (*forgotten) {
      gone.insert(id.number);
    } else {
      hunt.report.notes.push_back(absl::StrCat("experiment ", id.ToString(), " is in use: left alone"));
    }
  }
  return gone;
}

// What the experiments of the registry use.
struct UsedFolders {
  std::set<std::string> paths;  // trees, builds, environments
  bool all_builds = false;      // an open experiment's file can't be read, so it may use any
  std::set<std::string> names;  // of the experiments' own folders
};

using ParsedFiles = std::map<std::string, absl::StatusOr<ExperimentFile>>;  // by text: many experiments have the same

// `runs`: of a grid its runs, otherwise the experiment itself.
absl::Status AddBuildsOf(const GarbageHunt& hunt, const RunRecord& record, const std::vector<RunRecord>& runs,
                         ParsedFiles& files, UsedFolders& used) {
  ASSIGN_OR_RETURN(const NewExperiment experiment, hunt.registry.Specification(record.id.number));
  auto file = files.find(experiment.file_text);
  if (file == files.end())
    file = files.emplace(experiment.file_text, ParseExperimentFile(experiment.file_text, experiment.file_name)).first;
  RETURN_IF_ERROR(file->second.status());
  ASSIGN_OR_RETURN(const std::vector<std::string> folders,
                   BuildFoldersOf(*file->second, experiment.tree, experiment.options, hunt.home));
  used.paths.insert(folders.begin(), folders.end());
  // A run with another tree started with another file, too, but the registry has only that of the last attempt.
  for (const RunRecord& run : runs)
    if (run.tree != experiment.tree && !HasEnded(run.state))
      return absl::NotFoundError(absl::StrCat("run ", run.id.ToString(), " has code of its own"));
  return absl::OkStatus();
}

absl::Status AddFoldersOf(GarbageHunt& hunt, const RunRecord& record, ParsedFiles& files, UsedFolders& used) {
  used.paths.insert(JoinPath(hunt.home.trees(), record.tree));
  std::vector<RunRecord> runs = {record};
  if (record.runs > 0) {
    ASSIGN_OR_RETURN(runs, hunt.registry.Runs(record.id.number));
  }
  for (const RunRecord& run : runs) used.paths.insert(JoinPath(hunt.home.trees(), run.tree));
  const absl::Status added = AddBuildsOf(hunt, record, runs, files, used);
  const bool open = !HasEnded(record.state) ||
                    std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return !HasEnded(run.state); });
  // An experiment that has ended uses nothing that can't be built again.
  if (added.ok() || !open) return absl::OkStatus();
  used.all_builds = true;
  hunt.report.notes.push_back(absl::StrCat("builds and environments are left alone: what experiment ",
                                           record.id.ToString(),
                                           " uses can't be told: ", std::string(added.message())));
  return absl::OkStatus();
}

absl::StatusOr<UsedFolders> FindUsedFolders(GarbageHunt& hunt, const std::set<int64_t>& gone) {
  UsedFolders used;
  ParsedFiles files;
  ASSIGN_OR_RETURN(const std::vector<RunRecord> records, hunt.registry.List({}));
  for (const RunRecord& record : records) {
    used.names.insert(record.id.ToString());
    if (!gone.contains(record.id.number)) RETURN_IF_ERROR(AddFoldersOf(hunt, record, files, used));
  }
  return used;
}

bool IsOldGarbage(const GarbageHunt& hunt, const std::string& path, absl::Duration age) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  return absl::TimeFromTimespec(info.st_mtim) <= hunt.now - age;
}

bool IsEmptyFolder(const std::string& path) {
  const auto names = PosixFileSystem().ListDirectory(path);
  return names.ok() && names->empty();
}

// Returns what an entry of one of the folders is, or nullopt if it must stay.
std::optional<GarbageKind> KindOfGarbage(const GarbageHunt& hunt, GarbageKind kind, const std::string& parent,
                                         const std::string& name, const UsedFolders& used) {
  const std::string path = JoinPath(parent, name);
  if (absl::StartsWith(name, kTemporaryPrefix))
    return IsOldGarbage(hunt, path, kGarbageYouth) ? std::optional(GarbageKind::kLeftover) : std::nullopt;
  if (name[0] == '.' || kind == GarbageKind::kExperiment) return std::nullopt;
  const bool is_build = kind == GarbageKind::kBuild || kind == GarbageKind::kEnvironment;
  // A build that failed or was killed is useless also to experiments that need it.
  if (is_build && !PosixFileSystem().Exists(JoinPath(path, kBuildDoneName)))
    return IsOldGarbage(hunt, path, kGarbageYouth) ? std::optional(kind) : std::nullopt;
  if (used.paths.contains(path) || (is_build && used.all_builds)) return std::nullopt;
  return IsOldGarbage(hunt, path, std::max(hunt.options.older_than, kGarbageYouth)) ? std::optional(kind)
                                                                                    : std::nullopt;
}

// Holds the lock of `parent`, so that no process finds the entry at the same moment and starts to use it.
absl::Status SweepEntry(GarbageHunt& hunt, GarbageBin& bin, GarbageKind kind, const std::string& parent,
                        const std::string& name, const UsedFolders& used) {
  std::optional<GarbageKind> found = KindOfGarbage(hunt, kind, parent, name, used);
  if (!found.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(bin.Open());
  {
    ASSIGN_OR_RETURN(const FolderLock instant, FolderLock::Take(parent, kInstantLockWait));
    found = KindOfGarbage(hunt, kind, parent, name, used);
    if (!found.has_value()) return absl::OkStatus();
    // It is being filled or emptied. A process that starts that needs the lock of `parent` first.
    if (FolderLock::IsHeld(JoinPath(parent, name))) return absl::OkStatus();
    RETURN_IF_ERROR(bin.Throw(name));
  }
  bin.Report(*found, name);
  return absl::OkStatus();
}

void SweepFolder(GarbageHunt& hunt, GarbageBin& bin, GarbageKind kind, const std::string& parent,
                 const UsedFolders& used) {
  const auto names = PosixFileSystem().ListDirectory(parent);
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) hunt.report.problems.emplace_back(names.status().message());
    return;
  }
  for (const std::string& name : *names) {
    const absl::Status swept = SweepEntry(hunt, bin, kind, parent, name, used);
    if (!swept.ok()) hunt.report.problems.emplace_back(swept.message());
    // Kept, because it may hold a trained model. An empty one keeps the greatest number claimed.
    if (kind == GarbageKind::kExperiment && name[0] != '.' && !used.names.contains(name) &&
        IsOldGarbage(hunt, JoinPath(parent, name), kGarbageYouth) && !IsEmptyFolder(JoinPath(parent, name)))
      hunt.report.notes.push_back(absl::StrCat("experiments/", name, " is not in the registry: left alone"));
  }
}

}  // namespace

std::string_view Name(GarbageKind kind) {
  switch (kind) {
    case GarbageKind::kExperiment:
      return "experiment";
    case GarbageKind::kCode:
      return "code";
    case GarbageKind::kBuild:
      return "build";
    case GarbageKind::kEnvironment:
      return "environment";
    case GarbageKind::kLeftover:
      return "leftover";
  }
  return "";
}

absl::StatusOr<GarbageReport> CollectGarbage(const Home& home, Registry& registry, const Clock& clock,
                                             const GarbageOptions& options) {
  GarbageHunt hunt{.home = home, .registry = registry, .now = clock.Now(), .options = options};
  GarbageBin experiments(hunt, ExperimentsFolder(home));
  ASSIGN_OR_RETURN(const std::set<int64_t> gone, ForgetExperiments(hunt, experiments));
  ASSIGN_OR_RETURN(const UsedFolders used, FindUsedFolders(hunt, gone));
  GarbageBin trees(hunt, home.trees());
  GarbageBin builds(hunt, home.builds());
  GarbageBin environments(hunt, home.environments());
  SweepFolder(hunt, experiments, GarbageKind::kExperiment, ExperimentsFolder(home), used);
  SweepFolder(hunt, trees, GarbageKind::kCode, home.trees(), used);
  SweepFolder(hunt, builds, GarbageKind::kBuild, home.builds(), used);
  SweepFolder(hunt, environments, GarbageKind::kEnvironment, home.environments(), used);
  // Done last because it takes long: what was read from the registry must not be old when something is moved away.
  for (GarbageBin* bin : {&experiments, &trees, &builds, &environments}) bin->Empty();
  return std::move(hunt.report);
}

}  // namespace muster
