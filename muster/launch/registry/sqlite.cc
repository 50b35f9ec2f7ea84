#include "muster/launch/registry/sqlite.h"

#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

bool IsFullDisk(int system_error) { return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG; }

// Returns `path` as a URI that SQLite accepts together with options.
std::string SqliteUri(const std::string& path) {
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      absl::StrAppend(&uri, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      uri += c;
    }
  }
  return uri;
}

// SQLite would make the file readable for everybody, and the files beside it like it. Doesn't open a file that exists:
// closing it would release the locks of this process's other databases on it.
void MakePrivateFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
}

}  // namespace

SqliteStatement::~SqliteStatement() {
  if (statement_ != nullptr) Reset();
}

void SqliteStatement::Reset() {
  sqlite3_reset(statement_);  // returns the last step's result, which was reported already
  sqlite3_clear_bindings(statement_);
  parameter_ = 0;
  bind_error_ = SQLITE_OK;
}

SqliteStatement::SqliteStatement(SqliteStatement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      parameter_(other.parameter_),
      bind_error_(other.bind_error_) {}

void SqliteStatement::Keep(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

SqliteStatement& SqliteStatement::BindInt(int64_t value) {
  Keep(sqlite3_bind_int64(statement_, ++parameter_, value));
  return *this;
}

SqliteStatement& SqliteStatement::BindText(std::string_view value) {
  // An empty view may have a null pointer, which would be bound as NULL.
  const char* text = value.empty() ? "" : value.data();
  Keep(sqlite3_bind_text64(statement_, ++parameter_, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::BindBytes(std::string_view value) {
  const char* bytes = value.empty() ? "" : value.data();
  Keep(sqlite3_bind_blob64(statement_, ++parameter_, bytes, value.size(), SQLITE_TRANSIENT));
  return *this;
}

SqliteStatement& SqliteStatement::BindNull() {
  Keep(sqlite3_bind_null(statement_, ++parameter_));
  return *this;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (bind_error_ != SQLITE_OK) return database_->Error(bind_error_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Error(code);
}

absl::Status SqliteStatement::Run() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return absl::OkStatus();
  }
}

int64_t SqliteStatement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

std::string SqliteStatement::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return "";
  return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

bool SqliteStatement::IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::OpenAs(const std::string& name,
                                                                       const std::string& path) {
  sqlite3* handle = nullptr;
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
  const int code = sqlite3_open_v2(name.c_str(), &handle, kFlags, nullptr);
  auto database = std::unique_ptr<SqliteDatabase>(new SqliteDatabase(handle, path));
  if (code != SQLITE_OK) return database->Error(code);
  sqlite3_busy_timeout(handle, static_cast<int>(absl::ToInt64Milliseconds(kBusyTimeout)));
  // Keeps the files -wal and -shm when the last user closes: without them a database in a read-only folder can't be
  // read. The first is empty then, so that the next user has nothing to read in it.
  int stay = 1;
  sqlite3_file_control(handle, "main", SQLITE_FCNTL_PERSIST_WAL, &stay);
  RETURN_IF_ERROR(database->Execute("PRAGMA journal_size_limit = 0"));
  RETURN_IF_ERROR(database->Value("SELECT count(*) FROM sqlite_schema").status());
  return database;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const std::string& path) {
  MakePrivateFile(path);
  auto database = OpenAs(SqliteUri(path), path);
  // A copy without those files in a place where none can be made, so nobody writes it.
  const bool unwritable = absl::IsPermissionDenied(database.status());
  if (unwritable && access(path.c_str(), R_OK) == 0 && access((path + "-wal").c_str(), F_OK) != 0) {
    return OpenAs(SqliteUri(path) + "?immutable=1", path);
  }
  return database;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::OpenInMemory() {
  return OpenAs(":memory:", "the index in memory");
}

SqliteDatabase::~SqliteDatabase() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  MUSTER_CHECK(sqlite3_close(database_) == SQLITE_OK);
}

absl::StatusOr<SqliteStatement> SqliteDatabase::Prepare(std::string_view sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) {
    MUSTER_CHECK(sqlite3_stmt_busy(known->second) == 0);
    return SqliteStatement(*this, known->second);
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  statements_.emplace(sql, statement);
  return SqliteStatement(*this, statement);
}

absl::Status SqliteDatabase::Execute(const std::string& sql) {
  const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<int64_t> SqliteDatabase::Value(std::string_view sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::Status SqliteDatabase::UseWal() {
  // SQLite itself doesn't wait here. Without shared memory the mode stays as it was, which works, too.
  constexpr int kPauseMs = 10;
  for (int64_t waited = 0;; waited += kPauseMs) {
    const absl::Status status = Execute("PRAGMA journal_mode=WAL");
    if (!absl::IsUnavailable(status) || waited >= absl::ToInt64Milliseconds(kBusyTimeout)) return status;
    poll(nullptr, 0, kPauseMs);
  }
}

absl::Status SqliteDatabase::WipeDeleted() {
  RETURN_IF_ERROR(Execute("VACUUM"));
  // Readers may take as long as they like; nobody waits for them here.
  sqlite3_busy_timeout(database_, 0);
  const absl::StatusOr<int64_t> busy = Value("PRAGMA wal_checkpoint(TRUNCATE)");
  sqlite3_busy_timeout(database_, static_cast<int>(absl::ToInt64Milliseconds(kBusyTimeout)));
  RETURN_IF_ERROR(busy.status());
  return *busy == 0 ? absl::OkStatus() : Error(SQLITE_BUSY);
}

bool SqliteDatabase::read_only() const { return sqlite3_db_readonly(database_, "main") != 0; }
bool SqliteDatabase::in_transaction() const { return sqlite3_get_autocommit(database_) == 0; }
int64_t SqliteDatabase::last_row() const { return sqlite3_last_insert_rowid(database_); }
int64_t SqliteDatabase::changes() const { return sqlite3_changes64(database_); }

absl::Status SqliteDatabase::Error(int code) const {
  const int last_error = errno;  // of a failed commit, SQLite keeps no errno
  const std::string what = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_);
  const int primary = code & 0xff;
  const bool of_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  const int kept_error = of_system && database_ != nullptr ? sqlite3_system_errno(database_) : 0;
  const int system_error = kept_error == 0 && primary == SQLITE_IOERR ? last_error : kept_error;
  const std::string because = system_error == 0 ? what : absl::StrCat(what, ": ", strerror(system_error));
  if (primary == SQLITE_FULL || IsFullDisk(system_error)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", path_, " (", because, "): it is as it was; make room on its disk"));
  }
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat("others have been writing to ", path_, " for ",
                                                 absl::ToInt64Seconds(kBusyTimeout), " s; try again"));
    case SQLITE_READONLY:
      return absl::PermissionDeniedError(
          absl::StrCat(path_, " can be read but not written by this user (", because,
                       "); make it and its folder writable, or set MUSTER_HOME to another folder"));
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(
          absl::StrCat(path_,
                       " is not a database; move it away (experiments start from 1 then), or set MUSTER_HOME to "
                       "another folder"));
    case SQLITE_CORRUPT:
      return absl::DataLossError(absl::StrCat(path_, " is damaged (", because,
                                              "); save what can be saved with `sqlite3 ", path_,
                                              " .recover`, then move it away; the experiments' folders beside it "
                                              "are as they were"));
    case SQLITE_CANTOPEN: {
      const std::string message = absl::StrCat("cannot open ", path_, ": ", because,
                                               "; does its folder exist, and may "
                                               "this user use it?");
      if (system_error == EACCES || system_error == EPERM) return absl::PermissionDeniedError(message);
      return system_error == ENOENT ? absl::NotFoundError(message) : absl::UnknownError(message);
    }
    default:
      return absl::InternalError(absl::StrCat(path_, ": ", because, " (SQLite error ", code, ")"));
  }
}

absl::Status SqliteDatabase::SetDurability(Durability durability) {
  if (durability == durability_) return absl::OkStatus();
  RETURN_IF_ERROR(Execute(durability == Durability::kDisk ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  durability_ = durability;
  return absl::OkStatus();
}

absl::StatusOr<SqliteTransaction> SqliteTransaction::Begin(SqliteDatabase& database, Durability durability) {
  RETURN_IF_ERROR(database.SetDurability(durability));
  ASSIGN_OR_RETURN(SqliteStatement begin, database.Prepare("BEGIN IMMEDIATE"));
  RETURN_IF_ERROR(begin.Run());
  return SqliteTransaction(database);
}

SqliteTransaction::~SqliteTransaction() {
  // After some errors SQLite has already rolled back.
  if (database_ == nullptr || sqlite3_get_autocommit(database_->database_) != 0) return;
  sqlite3_exec(database_->database_, "ROLLBACK", nullptr, nullptr, nullptr);
}

SqliteTransaction::SqliteTransaction(SqliteTransaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

absl::Status SqliteTransaction::Commit() {
  ASSIGN_OR_RETURN(SqliteStatement commit, database_->Prepare("COMMIT"));
  return commit.Run();
}

}  // namespace muster
