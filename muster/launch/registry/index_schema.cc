#include "muster/launch/registry/index_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// `runs` has one row per experiment (run 0) and one per run of a grid. Long columns come last, so that reading the rest
// of a row doesn't read them.
constexpr char kIndexTables[] = R"(
CREATE TABLE experiments (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  project TEXT NOT NULL,
  folder TEXT NOT NULL,
  tree TEXT NOT NULL,
  runs INTEGER NOT NULL,
  file_name TEXT NOT NULL,
  options TEXT NOT NULL,
  environment BLOB NOT NULL,
  file_text TEXT NOT NULL,
  signature TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX experiments_of_project ON experiments (project);
CREATE TABLE runs (
  number INTEGER NOT NULL,
  run INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  supervisor INTEGER NOT NULL,
  machine TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  ended_us INTEGER,
  exit_code INTEGER NOT NULL,
  tree TEXT NOT NULL,
  output_dir TEXT NOT NULL,
  reason TEXT NOT NULL,
  parameters TEXT NOT NULL,
  run_id TEXT NOT NULL DEFAULT '',
  records INTEGER NOT NULL DEFAULT 0,
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
  run INTEGER NOT NULL
) STRICT;
CREATE TABLE notes (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)";

enum class IndexFormat { kEmpty, kOurs };

// Returns the format of a database that this muster can use.
absl::StatusOr<IndexFormat> FindIndexFormat(SqliteDatabase& database) {
  ASSIGN_OR_RETURN(const int64_t format, database.Value("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int64_t application, database.Value("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int64_t tables, database.Value("SELECT count(*) FROM sqlite_schema"));
  if (format == 0 && application == 0 && tables == 0) return IndexFormat::kEmpty;
  if (application != kRegistryApplication) {
    return absl::FailedPreconditionError(
        absl::StrCat(database.path(),
                     " is a database of another program, not a registry of experiments; set "
                     "MUSTER_HOME to another folder"));
  }
  if (format == kIndexFormat) return IndexFormat::kOurs;
  return absl::FailedPreconditionError(absl::StrCat(database.path(), " was made by a newer muster (format ", format,
                                                    "; this one knows ", kIndexFormat,
                                                    "): use that one, or set MUSTER_HOME to another folder"));
}

absl::Status MakeIndex(SqliteDatabase& database, const std::function<int64_t()>& after) {
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database, Durability::kDisk));
  ASSIGN_OR_RETURN(const IndexFormat format, FindIndexFormat(database));
  if (format != IndexFormat::kEmpty) return absl::OkStatus();  // another process has made it meanwhile
  RETURN_IF_ERROR(database.Execute(kIndexTables));
  RETURN_IF_ERROR(database.Execute(absl::StrCat("INSERT INTO sqlite_sequence (name, seq) VALUES ('experiments', ",
                                                after(), ");", "PRAGMA application_id = ", kRegistryApplication,
                                                "; PRAGMA user_version = ", kIndexFormat)));
  return transaction.Commit();
}

}  // namespace

absl::Status PrepareIndex(SqliteDatabase& database, const std::function<int64_t()>& after) {
  absl::StatusOr<IndexFormat> format = FindIndexFormat(database);
  // Another process may make the tables while the numbers are read one by one; then read them again while nobody
  // writes.
  if (!database.read_only() && (!format.ok() || *format == IndexFormat::kEmpty)) {
    RETURN_IF_ERROR(MakeIndex(database, after));
    format = IndexFormat::kOurs;
  }
  RETURN_IF_ERROR(format.status());
  if (*format == IndexFormat::kEmpty) {
    return absl::PermissionDeniedError(
        absl::StrCat(database.path(), " is empty and can't be written by this user: there are no experiments to see"));
  }
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
