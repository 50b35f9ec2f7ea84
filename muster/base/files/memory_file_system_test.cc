#include "muster/base/files/memory_file_system.h"

#include <gmock/gmock.h>

namespace muster::memory_file_system_test {
namespace {

using ::testing::ElementsAre;

ByteSpan Bytes(const std::string& text) { return AsBytes(text.data(), text.size()); }

absl::Status Put(FileSystem& files, const std::string& path, const std::string& content, bool sync = false) {
  auto file = files.OpenForWriting(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(Bytes(content));
  if (status.ok() && sync) status = (*file)->Sync();
  if (status.ok()) status = (*file)->Close();
  return status;
}

class MemoryFileSystemTest : public ::testing::Test {
 protected:
  MemoryFileSystemTest() { EXPECT_TRUE(files_.CreateDirectory("d").ok()); }
  MemoryFileSystem files_;
};

TEST_F(MemoryFileSystemTest, TakesWhatFitsAndThenIsFull) {
  files_.FillAfter(5);
  EXPECT_TRUE(Put(files_, "d/a", "123").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Put(files_, "d/b", "456")));
  EXPECT_EQ(*files_.ReadFile("d/b"), "45");
  files_.Unfill();
  EXPECT_TRUE(Put(files_, "d/b", "456").ok());
}

TEST_F(MemoryFileSystemTest, ReadOnlyRefusesEveryChangeAndNoReading) {
  ASSERT_TRUE(Put(files_, "d/a", "1").ok());
  files_.SetReadOnly(true);
  EXPECT_TRUE(absl::IsPermissionDenied(Put(files_, "d/b", "1")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_.Rename("d/a", "d/b")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_.Remove("d/a")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_.CreateDirectory("e")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_.Lock("d/lock", "me").status()));
  EXPECT_THAT(*files_.ListDirectory("d"), ElementsAre("a"));
  EXPECT_EQ(*files_.ReadFile("d/a"), "1");
}

TEST_F(MemoryFileSystemTest, FailsTheRenameThatWasScripted) {
  ASSERT_TRUE(Put(files_, "d/a", "1").ok());
  files_.FailRename(2);
  EXPECT_TRUE(files_.Rename("d/a", "d/b").ok());
  EXPECT_TRUE(absl::IsUnavailable(files_.Rename("d/b", "d/c")));
  EXPECT_TRUE(files_.Rename("d/b", "d/c").ok());
  EXPECT_THAT(*files_.ListDirectory("d"), ElementsAre("c"));
}

TEST_F(MemoryFileSystemTest, StopsAfterTheGivenNumberOfChanges) {
  files_.Resume();
  files_.StopAfter(3);
  EXPECT_TRUE(Put(files_, "d/a", "1").ok());  // two changes: open and append
  EXPECT_TRUE(files_.Rename("d/a", "d/b").ok());
  EXPECT_TRUE(absl::IsAborted(files_.Rename("d/b", "d/c")));
  EXPECT_TRUE(absl::IsAborted(Put(files_, "d/a", "1")));
  EXPECT_EQ(files_.Resume(), 3);
  EXPECT_TRUE(files_.Rename("d/b", "d/c").ok());
}

TEST_F(MemoryFileSystemTest, PowerFailureKeepsOnlyWhatWasSynced) {
  ASSERT_TRUE(Put(files_, "d/synced", "1", /*sync=*/true).ok());
  ASSERT_TRUE(Put(files_, "d/unsynced", "1").ok());
  ASSERT_TRUE(files_.SyncDirectory("d").ok());
  ASSERT_TRUE(Put(files_, "d/unnamed", "1", /*sync=*/true).ok());
  ASSERT_TRUE(files_.Rename("d/synced", "d/renamed").ok());
  files_.LosePower();
  EXPECT_THAT(*files_.ListDirectory("d"), ElementsAre("synced", "unsynced"));
  EXPECT_EQ(*files_.ReadFile("d/synced"), "1");
  EXPECT_EQ(*files_.ReadFile("d/unsynced"), "");
}

TEST_F(MemoryFileSystemTest, PowerFailureMayKeepSomeNamesThatWereNotSynced) {
  ASSERT_TRUE(Put(files_, "d/a", "1", /*sync=*/true).ok());
  ASSERT_TRUE(files_.SyncDirectory("d").ok());
  ASSERT_TRUE(Put(files_, "d/b", "2", /*sync=*/true).ok());
  ASSERT_TRUE(Put(files_, "d/c", "3", /*sync=*/true).ok());
  ASSERT_TRUE(files_.Remove("d/a").ok());
  files_.LosePower([](const std::string& path) { return path == "d/b"; });
  EXPECT_THAT(*files_.ListDirectory("d"), ElementsAre("a", "b"));
  EXPECT_EQ(*files_.ReadFile("d/b"), "2");
}

TEST_F(MemoryFileSystemTest, PowerFailureCutsOffOpenFiles) {
  auto file = files_.OpenForWriting("d/a");
  ASSERT_TRUE(file.ok() && (*file)->Append(Bytes("12")).ok() && (*file)->Sync().ok());
  ASSERT_TRUE(files_.SyncDirectory("d").ok());
  files_.LosePower();
  EXPECT_FALSE((*file)->Append(Bytes("3")).ok());
  EXPECT_EQ(*files_.ReadFile("d/a"), "12");
}

}  // namespace
}  // namespace muster::memory_file_system_test
