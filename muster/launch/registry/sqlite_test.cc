#include "muster/launch/registry/sqlite.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/full_disk.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::sqlite_test {
namespace {

using ::testing::HasSubstr;

class SqliteTest : public ::testing::Test {
 protected:
  ~SqliteTest() override { chmod(folder_.c_str(), 0755); }

  std::unique_ptr<SqliteDatabase> Open() { return SqliteDatabase::Open(path_).value(); }
  std::unique_ptr<SqliteDatabase> WithTable() {
    auto database = Open();
    EXPECT_TRUE(database->UseWal().ok());
    EXPECT_TRUE(database->Execute("CREATE TABLE IF NOT EXISTS t (n INTEGER, x)").ok());
    return database;
  }
  static absl::Status Insert(SqliteDatabase& database, int64_t n, const std::string& x, bool commit = true) {
    auto transaction = SqliteTransaction::Begin(database, Durability::kProcess);
    if (!transaction.ok()) return transaction.status();
    auto insert = database.Prepare("INSERT INTO t VALUES (?, ?)");
    if (!insert.ok()) return insert.status();
    const absl::Status status = insert->BindInt(n).BindBytes(x).Run();
    if (!status.ok() || !commit) return status;
    return transaction->Commit();
  }
  static int64_t Rows(SqliteDatabase& database) { return database.Value("SELECT count(*) FROM t").value_or(-1); }

  // Returns the result of `body` in a child to which file permissions apply, which root ignores; 255: it was killed.
  static int AsSomebodyElse(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      constexpr uid_t kNobody = 65534;
      if (getuid() == 0 && setuid(kNobody) != 0) _exit(254);
      _exit(body());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }
  // Returns the rows that a user with read permission sees; the code of the error plus 100; plus 200 if it could write.
  int RowsForReaders() {
    return AsSomebodyElse([this] {
      auto database = SqliteDatabase::Open(path_);
      if (!database.ok()) return 100 + static_cast<int>(database.status().code());
      if (!(*database)->read_only()) return 200;
      const absl::Status written = Insert(**database, 9, "");
      if (!absl::IsPermissionDenied(written)) return 200 + static_cast<int>(written.code());
      return static_cast<int>(Rows(**database));
    });
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  std::string path_ = scratch_ / "a %?#.db";  // has characters with a meaning in a URI
};

TEST_F(SqliteTest, KeepsBytesAsTheyAre) {
  auto database = WithTable();
  const std::string bytes("\0a\xff\n'", 5);
  ASSERT_TRUE(Insert(*database, -5, bytes).ok());
  ASSERT_TRUE(Insert(*database, 7, "").ok());
  {
    auto insert = database->Prepare("INSERT INTO t VALUES (?, ?)").value();
    ASSERT_TRUE(insert.BindInt(8).BindNull().Run().ok());
    insert.Reset();
    ASSERT_TRUE(insert.BindInt(9).BindText(std::string_view()).Run().ok());
    EXPECT_EQ(database->changes(), 1);
    EXPECT_EQ(database->last_row(), 4);
  }
  auto select = database->Prepare("SELECT n, x FROM t ORDER BY rowid").value();
  const std::string texts[] = {bytes, "", "", ""};
  const int64_t numbers[] = {-5, 7, 8, 9};
  for (int row = 0; row < 4; ++row) {
    const auto there = select.Step();
    ASSERT_TRUE(there.ok() && *there) << row;
    EXPECT_EQ(select.Int(0), numbers[row]);
    EXPECT_EQ(select.Text(1), texts[row]);
    EXPECT_EQ(select.IsNull(1), row == 2) << row;
  }
  const auto end = select.Step();
  EXPECT_TRUE(end.ok() && !*end);
}

TEST_F(SqliteTest, AnUnfinishedTransactionIsTakenBack) {
  auto database = WithTable();
  ASSERT_TRUE(Insert(*database, 1, "", /*commit=*/false).ok());
  EXPECT_EQ(Rows(*database), 0);
  ASSERT_TRUE(Insert(*database, 2, "").ok());
  EXPECT_EQ(Rows(*database), 1);
}

TEST_F(SqliteTest, ReadersDoNotWaitForAWriterAndSeeWhatWasCommitted) {
  auto writer = WithTable(), reader = Open();
  ASSERT_TRUE(Insert(*writer, 1, "").ok());
  auto transaction = SqliteTransaction::Begin(*writer, Durability::kDisk).value();
  ASSERT_TRUE(writer->Execute("INSERT INTO t VALUES (2, '')").ok());
  EXPECT_EQ(Rows(*reader), 1);
  ASSERT_TRUE(transaction.Commit().ok());
  EXPECT_EQ(Rows(*reader), 2);
}

TEST_F(SqliteTest, WhatIsDurableFollowsTheTransaction) {
  auto database = WithTable();
  for (const auto& [durability, synchronous] :
       {std::pair(Durability::kProcess, 1), std::pair(Durability::kDisk, 2), std::pair(Durability::kProcess, 1)}) {
    ASSERT_TRUE(SqliteTransaction::Begin(*database, durability).ok());
    EXPECT_EQ(database->Value("PRAGMA synchronous").value_or(-1), synchronous);
  }
}

TEST_F(SqliteTest, MistakesInAStatementAreErrors) {
  auto database = WithTable();
  EXPECT_EQ(database->Prepare("SELECT nothing FROM t").status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(database->Execute("NONSENSE").code(), absl::StatusCode::kInternal);
  auto select = database->Prepare("SELECT n FROM t WHERE n = ?").value();
  EXPECT_FALSE(select.BindInt(1).BindInt(2).Run().ok());  // one parameter too many
}

TEST_F(SqliteTest, WhatIsNoDatabaseIsSaidToBeNone) {
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path_, AsBytes("not a database, and long enough", 31)).ok());
  const auto database = SqliteDatabase::Open(path_);
  EXPECT_EQ(database.status().code(), absl::StatusCode::kFailedPrecondition) << database.status();
  EXPECT_THAT(std::string(database.status().message()), HasSubstr(path_ + " is not a database; move it away"));
  EXPECT_EQ(*PosixFileSystem().ReadFile(path_), "not a database, and long enough");
}

TEST_F(SqliteTest, ADamagedFileIsDataLoss) {
  {
    auto database = WithTable();
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(Insert(*database, i, std::string(300, 'x')).ok());
    ASSERT_TRUE(database->Execute("PRAGMA wal_checkpoint(TRUNCATE)").ok());
  }
  std::string content = *PosixFileSystem().ReadFile(path_);
  ASSERT_GT(content.size(), 20000U);
  for (size_t i = 4096; i < content.size(); ++i) content[i] = '\x5a';
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path_, AsBytes(content.data(), content.size())).ok());
  auto database = SqliteDatabase::Open(path_);
  ASSERT_TRUE(database.ok()) << database.status();  // its first page is intact
  const auto rows = (*database)->Value("SELECT count(*) FROM t");
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kDataLoss) << rows.status();
  EXPECT_THAT(std::string(rows.status().message()), HasSubstr(".recover"));
}

TEST_F(SqliteTest, NeedsItsFolder) {
  path_ = JoinPath(folder_, "none/a.db");
  const auto database = SqliteDatabase::Open(path_);
  EXPECT_EQ(database.status().code(), absl::StatusCode::kNotFound) << database.status();
  EXPECT_THAT(std::string(database.status().message()), HasSubstr(path_));
}

TEST_F(SqliteTest, AFullDatabaseIsExhaustedAndGoesOnWhenThereIsRoom) {
  auto database = WithTable();
  ASSERT_TRUE(database->Execute("PRAGMA max_page_count = 4").ok());
  const absl::Status full = Insert(*database, 1, std::string(100000, 'x'));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("make room"));
  EXPECT_EQ(Rows(*database), 0);
  ASSERT_TRUE(database->Execute("PRAGMA max_page_count = 4000").ok());
  EXPECT_TRUE(Insert(*database, 1, std::string(100000, 'x')).ok());
  EXPECT_EQ(Rows(*database), 1);
}

// The write itself fails.
TEST_F(SqliteTest, AWriteThatFailsForLackOfRoomTakesNothingWithIt) {
  auto database = WithTable();
  ASSERT_TRUE(Insert(*database, 1, "before").ok());
  std::optional<FullDisk> disk(std::in_place, 60000);
  const absl::Status full = Insert(*database, 2, std::string(200000, 'x'));
  disk.reset();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(Rows(*database), 1);
  EXPECT_TRUE(Insert(*database, 2, std::string(200000, 'x')).ok());
  EXPECT_EQ(Rows(*Open()), 2);
}

TEST_F(SqliteTest, CanBeReadByWhoMayNotWrite) {
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  {
    auto database = WithTable();
    for (const char* end : {"", "-wal", "-shm"}) ASSERT_EQ(chmod((path_ + end).c_str(), 0444), 0);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Insert(*database, i, "").ok());
    ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
    EXPECT_EQ(RowsForReaders(), 3) << "while somebody else has it open";
  }
  EXPECT_EQ(RowsForReaders(), 3) << "when nobody has";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  for (const char* end : {"-wal", "-shm"}) ASSERT_TRUE(PosixFileSystem().Remove(path_ + end).ok());
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  EXPECT_EQ(RowsForReaders(), 3) << "of the file alone";
  ASSERT_EQ(chmod(path_.c_str(), 0), 0);
  EXPECT_EQ(RowsForReaders(), 100 + static_cast<int>(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace muster::sqlite_test
