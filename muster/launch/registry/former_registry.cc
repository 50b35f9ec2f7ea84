#include "muster/launch/registry/former_registry.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/index_schema.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/registry/state_change.h"

namespace muster {
namespace {

constexpr int64_t kLastFormerFormat = 3;

constexpr char kUpgradeFrom1[] = R"(
ALTER TABLE runs ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_left ON runs (number, run) WHERE run_id <> '' AND ended_us IS NOT NULL;
)";

constexpr char kAddHosts[] = "ALTER TABLE tasks ADD COLUMN host TEXT NOT NULL DEFAULT ''";

// A boot alone was known of the machine.
constexpr char kNameMachines[] = R"(
ALTER TABLE runs RENAME COLUMN boot TO machine;
UPDATE runs SET machine = '- ' || machine || ' -' WHERE machine <> '';
)";

// Format 1 kept all variables of the shell.
absl::Status DropVariables(SqliteDatabase& database) {
  std::vector<std::pair<int64_t, std::string>> kept;
  ASSIGN_OR_RETURN(SqliteStatement select, database.Prepare("SELECT number, environment FROM experiments"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) break;
    kept.emplace_back(select.Int(0), EnvironmentBytes(KeptVariables(ParseEnvironmentBytes(select.Text(1)))));
  }
  ASSIGN_OR_RETURN(SqliteStatement update, database.Prepare("UPDATE experiments SET environment = ? WHERE number = ?"));
  for (const auto& [number, environment] : kept) {
    RETURN_IF_ERROR(update.BindBytes(environment).BindInt(number).Run());
    update.Reset();
  }
  return absl::OkStatus();
}

// `sql` adds it.
absl::Status AddColumn(SqliteDatabase& database, const std::string& table, const std::string& column,
                       const std::string& sql) {
  ASSIGN_OR_RETURN(const int64_t has_column, database.Value(absl::StrCat("SELECT count(*) FROM pragma_table_info('",
                                                                         table, "') WHERE name = '", column, "'")));
  return has_column == 0 ? database.Execute(sql) : absl::OkStatus();
}

// Gives its tables the columns of today's.
absl::Status BringUpToDate(SqliteDatabase& former) {
  ASSIGN_OR_RETURN(const int64_t format, former.Value("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t application, former.Value("PRAGMA application_id"));
  if (application != kRegistryApplication)
    return absl::FailedPreconditionError(
        absl::StrCat(former.path(), " is a database of another program, not a registry of experiments; set ",
                     "MUSTER_HOME to another folder"));
  if (format < 1 || format > kLastFormerFormat)
    return absl::FailedPreconditionError(absl::StrCat(former.path(), " has the unknown format ", format,
                                                      "; move it away, or set MUSTER_HOME to another ", "folder"));
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(former, Durability::kDisk));
  RETURN_IF_ERROR(AddColumn(former, "tasks", "host", kAddHosts));
  RETURN_IF_ERROR(AddColumn(former, "runs", "run_id", kUpgradeFrom1));
  RETURN_IF_ERROR(AddColumn(former, "runs", "machine", kNameMachines));
  RETURN_IF_ERROR(AddColumn(former, "runs", "records", "ALTER TABLE runs ADD COLUMN records INTEGER DEFAULT 0"));
  RETURN_IF_ERROR(DropVariables(former));
  return transaction.Commit();
}

absl::StatusOr<std::vector<ExperimentId>> AllRunsOf(SqliteDatabase& former, const char* query) {
  ASSIGN_OR_RETURN(SqliteStatement select, former.Prepare(query));
  std::vector<ExperimentId> ids;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return ids;
    ids.push_back({.number = select.Int(0), .run = static_cast<int>(select.Int(1))});
  }
}

absl::Status RefuseWhileOneRuns(SqliteDatabase& former, const Home& home) {
  ASSIGN_OR_RETURN(const std::vector<ExperimentId> open,
                   AllRunsOf(former, "SELECT number, run FROM runs WHERE ended_us IS NULL"));
  for (const ExperimentId& id : open)
    if (RunLock::IsHeld(home.lock(id)))
      return absl::FailedPreconditionError(
          absl::StrCat("experiment ", id.ToString(), " runs under an older muster, which keeps its state in ",
                       former.path(), ": wait for its end, or end it with that muster's `muster kill`"));
  return absl::OkStatus();
}

absl::Status WriteFiles(SqliteDatabase& former, const Home& home) {
  FileSystem& files = PosixFileSystem();
  std::error_code unimportant;
  ASSIGN_OR_RETURN(const std::vector<ExperimentId> ids,
                   AllRunsOf(former, "SELECT number, run FROM runs ORDER BY number, run DESC"));
  for (const ExperimentId& id : ids) {
    ASSIGN_OR_RETURN(const RunChange state, StateOfRows(former, id));
    const bool has_begun = state.run.state != RunState::kCreated;
    if (id.run == 0 || has_begun) RETURN_IF_ERROR(files.CreateDirectory(home.folder(id)));
    if (has_begun) {
      std::filesystem::remove(home.records(id), unimportant);  // of a take-over that was cut off
      RETURN_IF_ERROR(AppendRecord(home.records(id), 0, RecordText(state), Durability::kProcess).status());
      RETURN_IF_ERROR(ReplaceFile(home.state(id), StateText(state, state.run.created), Durability::kProcess));
    }
    if (id.run != 0) continue;
    ASSIGN_OR_RETURN(const ExperimentFileText file, ExperimentOfRows(former, id.number));
    const std::string text = ExperimentText(file);
    RETURN_IF_ERROR(ReplaceFile(home.experiment_file(id.number), text, Durability::kDisk));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeOverFormerRegistry(SqliteDatabase& index, const Home& home) {
  FileSystem& files = PosixFileSystem();
  const std::string path = home.former_database();
  if (!files.Exists(path)) return absl::OkStatus();
  // One command at a time does it.
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(index, Durability::kProcess));
  if (!files.Exists(path)) return absl::OkStatus();
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDatabase> former, SqliteDatabase::Open(path));
    if (former->read_only())
      return absl::FailedPreconditionError(
          absl::StrCat(path, " was made by an older muster; its owner's next `muster status` brings it up to date"));
    RETURN_IF_ERROR(BringUpToDate(*former));
    RETURN_IF_ERROR(RefuseWhileOneRuns(*former, home));
    RETURN_IF_ERROR(WriteFiles(*former, home));
    RETURN_IF_ERROR(former->WipeDeleted());
  }
  RETURN_IF_ERROR(files.Rename(path, path + ".old"));
  for (const char* end : {"-wal", "-shm"}) static_cast<void>(files.Remove(path + end));
  return absl::OkStatus();
}

}  // namespace muster
