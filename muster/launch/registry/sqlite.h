// An SQLite database as the registry uses it: statements are prepared once, errors are absl::Status that name the file
// and say what to do, transactions end automatically. WAL mode, so that readers and one writer don't wait for each
// other; a writer waits up to kBusyTimeout for another.
//
// Durability says what a commit survives: always the death of this process at any moment, but a loss of power only with
// kDisk, which costs an fsync (measured 4 ms on a disk, against 0.02 ms). After a loss of power the database is intact,
// in the state of some commit not older than the last kDisk.
//
// Not thread-safe. SQLite's locks belong to a process: a child that was forked while a database was open must use
// neither it nor another of the same file until it has called exec.
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
#include "muster/launch/registry/files/durability.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster {

class SqliteDatabase;

// A statement borrowed from its database, which must outlive it. The destructor returns it for its next use. At most
// one of the same text may exist at a time.
class SqliteStatement {
 public:
  ~SqliteStatement();
  SqliteStatement(SqliteStatement&& other) noexcept;
  SqliteStatement& operator=(SqliteStatement&&) = delete;

  // Set the parameters, in order, before the first Step.
  SqliteStatement& BindInt(int64_t value);
  SqliteStatement& BindText(std::string_view value);
  SqliteStatement& BindBytes(std::string_view value);
  SqliteStatement& BindNull();

  // Returns true if it is at a (further) row, false if it is done.
  absl::StatusOr<bool> Step();
  // Runs it to its end.
  [[nodiscard]] absl::Status Run();
  // Makes it ready for other parameters.
  void Reset();

  // Return values of the current row, columns from 0. Text has bytes as they were bound; for NULL it is empty, and Int
  // is 0.
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

class SqliteDatabase {
 public:
  static constexpr absl::Duration kBusyTimeout = absl::Seconds(10);

  // Opens the file, makes it (for its owner only) if missing, and reads it for the first time. Opens it for reading
  // only (read_only) if it may not be written. FailedPrecondition: not a database. DataLoss: damaged.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path);
  // Makes one that goes with this object.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> OpenInMemory();
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  absl::StatusOr<SqliteStatement> Prepare(std::string_view sql);
  // Runs statements without parameters and results, separated by semicolons.
  [[nodiscard]] absl::Status Execute(const std::string& sql);
  // Returns the one value of a statement without parameters; 0 without a row.
  absl::StatusOr<int64_t> Value(std::string_view sql);
  // Rewrites the file without what was deleted in it, also in its WAL. Unavailable: others use it; try again later.
  [[nodiscard]] absl::Status WipeDeleted();
  // Switches to WAL mode if its file system supports that. Waits for others as a writer does.
  [[nodiscard]] absl::Status UseWal();

  const std::string& path() const { return path_; }
  bool read_only() const;
  bool in_transaction() const;
  // Returns the INTEGER PRIMARY KEY that the last INSERT made.
  int64_t last_row() const;
  // Returns how many rows the last statement changed.
  int64_t changes() const;

  // Returns what SQLite's result code means for the user.
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

// A transaction from BEGIN IMMEDIATE, which makes this the only writer, to Commit. The destructor rolls back without
// it.
class SqliteTransaction {
 public:
  // Unavailable: others wrote all the time. PermissionDenied: the database may only be read.
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
