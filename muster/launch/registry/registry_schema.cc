#include "muster/launch/registry/registry_schema.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/registry/registry_rows.h"

namespace muster {
namespace {

// `runs` has one row per experiment (run 0) and one per run of a grid. Long columns come last, so that reading the rest
// of a row doesn't read them.
constexpr char kRegistryTables[] = R"(
CREATE TABLE experiments (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  project TEXT NOT NULL,
  folder TEXT NOT NULL,
  tree TEXT NOT NULL,
  runs INTEGER NOT NULL,
  file_name TEXT NOT NULL,
  options TEXT NOT NULL,
  environment BLOB NOT NULL,
  file_text TEXT NOT NULL
) STRICT;
CREATE INDEX experiments_of_project ON experiments (project);
CREATE TABLE runs (
  number INTEGER NOT NULL,
  run INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  supervisor INTEGER NOT NULL,
  boot TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  ended_us INTEGER,
  exit_code INTEGER NOT NULL,
  tree TEXT NOT NULL,
  output_dir TEXT NOT NULL,
  reason TEXT NOT NULL,
  parameters TEXT NOT NULL,
  run_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (number, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_open ON runs (run, number) WHERE ended_us IS NULL;
CREATE INDEX runs_left ON runs (number, run) WHERE run_id <> '' AND ended_us IS NOT NULL;
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  run INTEGER NOT NULL,
  job TEXT NOT NULL,
  task INTEGER NOT NULL,
  state TEXT NOT NULL,
  since_us INTEGER NOT NULL,
  pid INTEGER NOT NULL,
  cgroup TEXT NOT NULL,
  status_address TEXT NOT NULL,
  gpus TEXT NOT NULL,
  mem_limit INTEGER NOT NULL,
  restarts INTEGER NOT NULL,
  exit_code INTEGER,
  exit_signal INTEGER,
  reason TEXT NOT NULL,
  host TEXT NOT NULL DEFAULT '',
  UNIQUE (number, run, job, task)
) STRICT;
CREATE TABLE gpu_leases (
  gpu INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  run INTEGER NOT NULL,
  since_us INTEGER NOT NULL
) STRICT;
)";

constexpr char kUpgradeFrom1[] = R"(
ALTER TABLE runs ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
CREATE INDEX runs_left ON runs (number, run) WHERE run_id <> '' AND ended_us IS NOT NULL;
)";

constexpr char kAddHosts[] = "ALTER TABLE tasks ADD COLUMN host TEXT NOT NULL DEFAULT ''";

enum class RegistryFormat { kEmpty, kWithSecrets, kWithoutHosts, kOurs };

// Returns the format of a database that this muster can use.
absl::StatusOr<RegistryFormat> FindRegistryFormat(SqliteDatabase& database) {
  ASSIGN_OR_RETURN(const int64_t format, database.Value("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t application, database.Value("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t tables, database.Value("SELECT count(*) FROM sqlite_schema"));
  if (format == 0 && application == 0 && tables == 0) return RegistryFormat::kEmpty;
  if (application != kRegistryApplication) {
    return absl::FailedPreconditionError(
        absl::StrCat(database.path(),
                     " is a database of another program, not a registry of experiments; set "
                     "MUSTER_HOME to another folder"));
  }
  if (format == kRegistryFormat) return RegistryFormat::kOurs;
  if (format == 1) return RegistryFormat::kWithSecrets;
  if (format == 2) return RegistryFormat::kWithoutHosts;
  return absl::FailedPreconditionError(absl::StrCat(database.path(), " was made by a newer muster (format ", format,
                                                    "; this one knows ", kRegistryFormat,
                                                    "): use that one, or set MUSTER_HOME to another folder"));
}

absl::Status MakeRegistry(SqliteDatabase& database, const std::function<int64_t()>& after) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database, Durability::kDisk));
  ASSIGN_OR_RETURN(const RegistryFormat format, FindRegistryFormat(database));
  if (format != RegistryFormat::kEmpty) return absl::OkStatus();  // another process has made it meanwhile
  RETURN_IF_ERROR(database.Execute(kRegistryTables));
  RETURN_IF_ERROR(database.Execute(absl::StrCat("INSERT INTO sqlite_sequence (name, seq) VALUES ('experiments', ",
                                                after(), ");", "PRAGMA application_id = ", kRegistryApplication,
                                                "; PRAGMA user_version = ", kRegistryFormat)));
  return transaction.Commit();
}

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

absl::Status AddColumn(SqliteDatabase& database, const std::string& table, const std::string& column,
                       const std::string& sql) {
  ASSIGN_OR_RETURN(const int64_t has_column, database.Value(absl::StrCat("SELECT count(*) FROM pragma_table_info('",
                                                                         table, "') WHERE name = '", column, "'")));
  return has_column == 0 ? database.Execute(sql) : absl::OkStatus();
}

absl::Status SetFormat(SqliteDatabase& database) {
  return database.Execute(absl::StrCat("PRAGMA user_version = ", kRegistryFormat));
}

// Until the old values are wiped, it stays format 1, and the next process that opens it goes on.
absl::Status UpgradeRegistry(SqliteDatabase& database) {
  {
    ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database, Durability::kDisk));
    ASSIGN_OR_RETURN(const RegistryFormat format, FindRegistryFormat(database));
    if (format == RegistryFormat::kOurs) return absl::OkStatus();  // another process has done it meanwhile
    RETURN_IF_ERROR(AddColumn(database, "tasks", "host", kAddHosts));
    if (format == RegistryFormat::kWithoutHosts) {
      RETURN_IF_ERROR(SetFormat(database));
      return transaction.Commit();
    }
    RETURN_IF_ERROR(AddColumn(database, "runs", "run_id", kUpgradeFrom1));
    RETURN_IF_ERROR(DropVariables(database));
    RETURN_IF_ERROR(transaction.Commit());
  }
  const absl::Status wiped = database.WipeDeleted();
  if (absl::IsUnavailable(wiped) || absl::IsResourceExhausted(wiped)) return absl::OkStatus();
  RETURN_IF_ERROR(wiped);
  return SetFormat(database);
}

}  // namespace

absl::Status PrepareRegistry(SqliteDatabase& database, const std::function<int64_t()>& after) {
  absl::StatusOr<RegistryFormat> format = FindRegistryFormat(database);
  // Another process may make the tables while the numbers are read one by one; then read them again while nobody
  // writes.
  if (!database.read_only() && (!format.ok() || *format == RegistryFormat::kEmpty)) {
    RETURN_IF_ERROR(MakeRegistry(database, after));
    format = RegistryFormat::kOurs;
  }
  RETURN_IF_ERROR(format.status());
  if (*format == RegistryFormat::kEmpty) {
    return absl::PermissionDeniedError(
        absl::StrCat(database.path(), " is empty and can't be written by this user: there are no experiments to see"));
  }
  const bool is_old = *format == RegistryFormat::kWithSecrets || *format == RegistryFormat::kWithoutHosts;
  if (is_old && database.read_only())
    return absl::FailedPreconditionError(
        absl::StrCat(database.path(),
                     " was made by an older muster; its owner's next `muster status` brings it up to "
                     "date"));
  if (is_old) RETURN_IF_ERROR(UpgradeRegistry(database));
  return database.read_only() ? absl::OkStatus() : database.UseWal();
}

std::string ListQuery(bool of_project, bool only_open) {
  // With CROSS JOIN, SQLite keeps the order of the tables.
  const char* project = of_project ? " AND e.project = ?" : "";
  if (only_open) {
    return absl::StrCat("SELECT ", kRunColumns,
                        " FROM runs r INDEXED BY runs_open CROSS JOIN experiments e ON e.number = r.number"
                        " WHERE r.ended_us IS NULL AND r.run = 0",
                        project, " ORDER BY r.number DESC LIMIT ?");
  }
  return absl::StrCat("SELECT ", kRunColumns,
                      " FROM experiments e CROSS JOIN runs r ON r.number = e.number AND r.run = 0 WHERE true", project,
                      " ORDER BY e.number DESC LIMIT ?");
}

std::string LastQuery(bool of_project) {
  return absl::StrCat("SELECT number FROM experiments", of_project ? " WHERE project = ?" : "",
                      " ORDER BY number DESC LIMIT 1");
}

}  // namespace muster
