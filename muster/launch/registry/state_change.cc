#include "muster/launch/registry/state_change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/index_schema.h"
#include "muster/launch/registry/registry_rows.h"

namespace muster {
namespace {

constexpr char kSelectSpecification[] =
    "SELECT project, folder, file_name, file_text, options, environment, tree, runs FROM experiments WHERE number = ?";
constexpr char kSelectAsked[] =
    "SELECT run, attempt, created_us, tree, parameters, output_dir, machine FROM runs WHERE number = ? ORDER BY run";

absl::StatusOr<std::vector<int>> LeasesOf(SqliteDatabase& database, const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database.Prepare("SELECT gpu FROM gpu_leases WHERE number = ? AND run = ? ORDER BY gpu"));
  select.BindInt(id.number).BindInt(id.run);
  std::vector<int> gpus;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return gpus;
    gpus.push_back(static_cast<int>(select.Int(0)));
  }
}

// Other hosts look at the folder's time to see whether it has changed.
void Touch(const std::string& folder) { utimensat(AT_FDCWD, folder.c_str(), nullptr, 0); }

absl::Status MakeMarker(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  close(fd);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExperimentFileText> ExperimentOfRows(SqliteDatabase& database, int64_t number) {
  ExperimentFileText file{.number = number};
  ASSIGN_OR_RETURN(SqliteStatement own, database.Prepare(kSelectSpecification));
  ASSIGN_OR_RETURN(const bool row, own.BindInt(number).Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no experiment ", number));
  file.experiment.project = own.Text(0);
  file.experiment.folder = own.Text(1);
  file.experiment.file_name = own.Text(2);
  file.experiment.file_text = own.Text(3);
  ASSIGN_OR_RETURN(file.experiment.options, ParseOptionsText(own.Text(4)));
  file.experiment.environment = ParseEnvironmentBytes(own.Text(5));
  file.experiment.tree = own.Text(6);
  file.experiment.grid = own.Int(7) > 0;
  ASSIGN_OR_RETURN(SqliteStatement runs, database.Prepare(kSelectAsked));
  runs.BindInt(number);
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, runs.Step());
    if (!more) return file;
    AskedRun asked{.run = static_cast<int>(runs.Int(0)),
                   .attempt = static_cast<int>(runs.Int(1)),
                   .created = absl::FromUnixMicros(runs.Int(2)),
                   .tree = runs.Text(3)};
    ASSIGN_OR_RETURN(asked.parameters, ParseParametersText(runs.Text(4)));
    asked.output_dir = runs.Text(5);
    asked.machine = runs.Text(6);
    file.runs.push_back(std::move(asked));
  }
}

int64_t GreatestNumberOfFolders(const Home& home) {
  const auto names = PosixFileSystem().ListDirectory(home.experiments());
  int64_t greatest = 0;
  if (!names.ok()) return greatest;
  for (const std::string& name : *names) {
    const auto id = ExperimentId::Parse(name);
    if (id.ok() && id->run == 0) greatest = std::max(greatest, id->number);
  }
  return greatest;
}

absl::StatusOr<RunChange> StateOfRows(SqliteDatabase& database, const ExperimentId& id) {
  RunChange change;
  ASSIGN_OR_RETURN(change.run, SelectRun(database, id));
  ASSIGN_OR_RETURN(change.gpus, LeasesOf(database, id));
  ASSIGN_OR_RETURN(change.tasks, SelectTasks(database, id));
  return change;
}

absl::Status WriteState(SqliteDatabase& database, const Home& home, const ExperimentId& id, absl::Time now) {
  ASSIGN_OR_RETURN(const RunChange state, StateOfRows(database, id));
  return ReplaceFile(home.state(id), StateText(state, now), Durability::kProcess);
}

absl::StatusOr<StateChange> StateChange::Begin(SqliteDatabase& database, const Home& home, Durability durability) {
  // The files are what must be on the disk.
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database, Durability::kProcess));
  return StateChange(database, home, durability, std::move(transaction));
}

StateChange::StateChange(StateChange&& other) noexcept
    : database_(other.database_),
      home_(other.home_),
      durability_(other.durability_),
      transaction_(std::move(other.transaction_)),
      undo_(std::exchange(other.undo_, {})),
      changed_(std::move(other.changed_)),
      maybe_over_(std::move(other.maybe_over_)) {}

StateChange::~StateChange() { TakeBack(); }

void StateChange::TakeBack() {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
  undo_.clear();
}

absl::StatusOr<int64_t> StateChange::ClaimNumber(int64_t above) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home_->experiments()));
  for (int64_t number = above + 1;; ++number) {
    const std::string folder = home_->folder({.number = number});
    if (mkdir(folder.c_str(), 0700) == 0) {
      undo_.emplace_back([folder] { static_cast<void>(PosixFileSystem().RemoveTree(folder)); });
      return number;
    }
    if (errno == ENOSPC || errno == EDQUOT)
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", folder, ": make room on its disk"));
    if (errno != EEXIST) return absl::ErrnoToStatus(errno == EROFS ? EACCES : errno, "cannot make " + folder);
    number = std::max(number, GreatestNumberOfFolders(*home_));
  }
}

absl::Status StateChange::WriteExperiment(int64_t number) {
  FileSystem& files = PosixFileSystem();
  ASSIGN_OR_RETURN(const ExperimentFileText file, ExperimentOfRows(*database_, number));
  const std::string path = home_->experiment_file(number);
  const auto before = files.ReadFile(path);
  if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
  RETURN_IF_ERROR(files.CreateDirectory(home_->open_folder()));
  RETURN_IF_ERROR(MakeMarker(home_->open_marker(number)));
  const auto replace = [path, before, marker = home_->open_marker(number)] {
    if (before.ok()) {
      static_cast<void>(ReplaceFile(path, *before, Durability::kDisk));
    } else {
      unlink(path.c_str());
      unlink(marker.c_str());
    }
  };
  undo_.emplace_back(replace);
  const std::string text = ExperimentText(file);
  RETURN_IF_ERROR(ReplaceFile(path, text, durability_));
  if (!before.ok()) RETURN_IF_ERROR(files.SyncDirectory(home_->experiments()));
  ASSIGN_OR_RETURN(SqliteStatement sign, database_->Prepare("UPDATE experiments SET signature = ? WHERE number = ?"));
  RETURN_IF_ERROR(sign.BindText(SignatureOf(path)).BindInt(number).Run());
  for (const AskedRun& asked : file.runs) changed_.insert({.number = number, .run = asked.run});
  return absl::OkStatus();
}

absl::Status StateChange::ForgetExperiment(int64_t number) {
  const std::string path = home_->experiment_file(number);
  const auto before = PosixFileSystem().ReadFile(path);
  if (before.ok())
    undo_.emplace_back([path, text = *before] { static_cast<void>(ReplaceFile(path, text, Durability::kDisk)); });
  if (unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
    return absl::ErrnoToStatus(errno == EROFS ? EACCES : errno, "cannot remove " + path);
  // The greatest number stays claimed.
  const std::string folder = home_->folder({.number = number});
  if (GreatestNumberOfFolders(*home_) < number && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return absl::ErrnoToStatus(errno == EROFS ? EACCES : errno, "cannot make " + folder);
  Touch(home_->experiments());
  return absl::OkStatus();
}

absl::Status StateChange::WriteRecord(const ExperimentId& id, const std::vector<TaskId>& tasks) {
  RunChange change;
  ASSIGN_OR_RETURN(change.run, SelectRun(*database_, id));
  ASSIGN_OR_RETURN(change.gpus, LeasesOf(*database_, id));
  for (const TaskId& task : tasks) {
    ASSIGN_OR_RETURN(TaskRecord row, SelectTask(*database_, id, task));
    change.tasks.push_back(std::move(row));
  }
  uint64_t end = 0;
  {
    ASSIGN_OR_RETURN(SqliteStatement select,
                     database_->Prepare("SELECT records FROM runs WHERE number = ? AND run = ?"));
    RETURN_IF_ERROR(select.BindInt(id.number).BindInt(id.run).Step().status());
    end = static_cast<uint64_t>(select.Int(0));
  }
  if (end == 0) RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home_->folder(id)));
  const std::string path = home_->records(id);
  ASSIGN_OR_RETURN(const uint64_t appended, AppendRecord(path, end, RecordText(change), durability_));
  undo_.emplace_back([path, end] { TakeRecordBack(path, end); });
  ASSIGN_OR_RETURN(SqliteStatement update,
                   database_->Prepare("UPDATE runs SET records = ? WHERE number = ? AND run = ?"));
  RETURN_IF_ERROR(update.BindInt(static_cast<int64_t>(appended)).BindInt(id.number).BindInt(id.run).Run());
  changed_.insert(id);
  if (HasEnded(change.run.state)) maybe_over_.insert(id.number);
  return absl::OkStatus();
}

absl::Status StateChange::MarkOpen(int64_t number) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home_->open_folder()));
  return MakeMarker(home_->open_marker(number));
}

absl::Status StateChange::Commit(absl::Time now) {
  RETURN_IF_ERROR(transaction_.Commit());
  undo_.clear();
  for (const ExperimentId& id : changed_) {
    // Without room it stays as it was; the supervisor renews it soon. A waiting run of a grid has no folder.
    if (PosixFileSystem().Exists(home_->records(id))) static_cast<void>(WriteState(*database_, *home_, id, now));
  }
  for (const int64_t number : maybe_over_) {
    const auto open = CountOpenRuns(*database_, number);
    if (open.ok() && *open == 0) unlink(home_->open_marker(number).c_str());
  }
  return absl::OkStatus();
}

}  // namespace muster
