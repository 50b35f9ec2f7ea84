// An SQLite database as the registry uses it: statements prepared once, errors as absl::Status that name the file and
// say what to do, transactions that end themselves. WAL mode, so that readers and one writer don't wait for each other;
// a writer waits up to kBusyTimeout for another.
//
// What a commit survives is said by Durability: the death of this process at any moment in either case; the loss of
// power only with kDisk, which costs an fsync (4 ms on the disk where it was measured, against 0.02 ms). After a loss
// of power the database is whole, and at the state of some commit not older than the last kDisk.
//
// Not thread-safe. SQLite's locks are a process's: a child that was forked while one was open uses neither it nor
// another of the same file (after exec it may).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster {

class SqliteDatabase;

// Borrowed from its database, which must outlive it; afterwards ready for its next use. One at a time of the same text.
class SqliteStatement {
 public:
  ~SqliteStatement();
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&&) = delete;

  // The parameters, in order, before the first Step.
  SqliteStatement& BindInt(int64_t value);
  SqliteStatement& BindText(std::string_view value);
  SqliteStatement& BindBytes(std::string_view value);
  SqliteStatement& BindNull();

  // True: there is a (further) row, false: it is done.
  absl::StatusOr<bool> Step();
  // To its end.
  [[nodiscard]] absl::Status Run();
  // Ready for other parameters.
  void Reset();

  // Of the present row, columns from 0. Text has bytes as they were bound; of NULL it is empty, and Int 0.
  int64_t Int(int column) const;
  std::string Text(int column) const;
  bool IsNull(int column) const;

 private:
  friend class SqliteDatabase;
  SqliteStatement(const SqliteDatabase& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}
  void Keep(int code);

  const SqliteDatabase* database_;
  sqlite3_stmt* statement_;  // null: moved from
  int parameter_ = 0;        // bound so far
  int bind_error_ = 0;
};

enum class Durability { kProcess, kDisk };

class SqliteDatabase {
 public:
  static constexpr absl::Duration kBusyTimeout = absl::Seconds(10);

  // Makes the file if there is none, and reads it for the first time. Where it may not be written it is opened for
  // reading (read_only). FailedPrecondition: not a database. DataLoss: a damaged one.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  absl::StatusOr<SqliteStatement> Prepare(std::string_view sql);
  // Statements without parameters and results, separated by semicolons.
  [[nodiscard]] absl::Status Execute(const std::string& sql);
  // The one value of a statement without parameters; 0 without a row.
  absl::StatusOr<int64_t> Value(std::string_view sql);
  // To WAL mode, if it isn't and its file system can do that. Waits for others as a writer does.
  [[nodiscard]] absl::Status UseWal();

  const std::string& path() const { return path_; }
  bool read_only() const;
  // The INTEGER PRIMARY KEY that the last INSERT made.
  int64_t last_row() const;
  // Rows that the last statement changed.
  int64_t changes() const;

  // What SQLite's result code means for the user.
  absl::Status Error(int code) const;

 private:
  friend class SqliteTransaction;
  SqliteDatabase(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> OpenAs(const std::string& name, const std::string& path);
  [[nodiscard]] absl::Status SetDurability(Durability durability);

  sqlite3* const database_;
  const std::string path_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;  // by their text
  Durability durability_ = Durability::kDisk;                     // SQLite's default
};

// From BEGIN IMMEDIATE, which makes this the only writer, to Commit, or to its own end, which takes back what was done.
class SqliteTransaction {
 public:
  // Unavailable: others wrote all the time. PermissionDenied: it may only be read.
  static absl::StatusOr<SqliteTransaction> Begin(SqliteDatabase& database, Durability durability);
  ~SqliteTransaction();
  SqliteTransaction(SqliteTransaction&& other) noexcept;
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;

  [[nodiscard]] absl::Status Commit();

 private:
  explicit SqliteTransaction(SqliteDatabase& database) : database_(&database) {}
  SqliteDatabase* database_;  // null: moved from
};

}  // namespace muster
