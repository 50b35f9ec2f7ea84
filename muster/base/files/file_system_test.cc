#include "muster/base/files/file_system.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster/base/files/memory_file_system.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::file_system_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

ByteSpan Bytes(std::string_view text) { return AsBytes(text.data(), text.size()); }

// The machine's file system and the one for tests keep the same contract.
class FileSystemTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ASSERT_TRUE(files().CreateDirectory(root_.path()).ok()); }

  FileSystem& files() { return GetParam() ? PosixFileSystem() : memory_; }
  std::string Path(const std::string& name) { return root_ / name; }
  void Put(const std::string& name, std::string_view content) {
    auto file = files().OpenForWriting(Path(name)).value();
    ASSERT_TRUE(file->Append(Bytes(content)).ok());
    ASSERT_TRUE(file->Flush().ok());
    ASSERT_TRUE(file->Sync().ok());
    ASSERT_TRUE(file->Close().ok());
  }

  const ScratchFolder root_;
  MemoryFileSystem memory_;
};

TEST_P(FileSystemTest, WritesReadsAndTruncatesOnOpening) {
  Put("a", "first, longer");
  Put("a", "second");
  EXPECT_EQ(*files().ReadFile(Path("a")), "second");
  EXPECT_EQ(*files().FileSize(Path("a")), 6u);
  std::string part(3, '\0');
  ASSERT_TRUE(files().ReadAt(Path("a"), 2, AsMutableBytes(part.data(), 3)).ok());
  EXPECT_EQ(part, "con");
  const absl::Status beyond = files().ReadAt(Path("a"), 4, AsMutableBytes(part.data(), 3));
  EXPECT_TRUE(absl::IsDataLoss(beyond)) << beyond;
}

TEST_P(FileSystemTest, ANewFileReplacesAnotherWhoseWriterGoesOnWithItsOwn) {
  auto old = files().CreateFile(Path("a")).value();
  ASSERT_TRUE(old->Append(Bytes("old")).ok());
  auto fresh = files().CreateFile(Path("a")).value();
  ASSERT_TRUE(fresh->Append(Bytes("new")).ok());
  ASSERT_TRUE(old->Append(Bytes("er")).ok());
  ASSERT_TRUE(old->Close().ok());
  ASSERT_TRUE(fresh->Close().ok());
  EXPECT_EQ(*files().ReadFile(Path("a")), "new");
}

TEST_P(FileSystemTest, AShortFileIsReadUpToItsLimit) {
  Put("a", "four");
  EXPECT_EQ(*files().ReadShortFile(Path("a"), 4), "four");
  const absl::Status longer = files().ReadShortFile(Path("a"), 3).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(longer)) << longer;
  EXPECT_THAT(std::string(longer.message()), HasSubstr(Path("a")));
}

TEST_P(FileSystemTest, AnOpenFileStaysTheSameWhateverTakesItsName) {
  Put("a", "first");
  Put("b", "2");
  const auto open = files().OpenForReading(Path("a")).value();
  ASSERT_TRUE(files().Rename(Path("b"), Path("a")).ok());
  ASSERT_TRUE(files().Remove(Path("a")).ok());
  EXPECT_EQ(*open->Size(), 5u);
  std::string part(3, '\0');
  ASSERT_TRUE(open->ReadAt(1, AsMutableBytes(part.data(), 3)).ok());
  EXPECT_EQ(part, "irs");
  EXPECT_TRUE(absl::IsDataLoss(open->ReadAt(3, AsMutableBytes(part.data(), 3))));
}

TEST_P(FileSystemTest, MissingFilesAreNotFoundAndNamed) {
  const std::string path = Path("nothing");
  std::byte byte{};
  for (const absl::Status& status :
       {files().ReadFile(path).status(), files().FileSize(path).status(), files().Remove(path),
        files().Rename(path, Path("b")), files().ReadAt(path, 0, {&byte, 1}), files().OpenForReading(path).status(),
        files().ListDirectory(path).status(), files().OpenForWriting(Path("no/file")).status(),
        files().SyncDirectory(path), files().CreateFile(Path("no/file")).status(),
        files().ReadShortFile(path, 10).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(root_.path()));
  }
  EXPECT_FALSE(files().Exists(path));
  EXPECT_TRUE(files().RemoveTree(path).ok());
}

TEST_P(FileSystemTest, DirectoriesRenamesAndRemovals) {
  ASSERT_TRUE(files().CreateDirectory(Path("x/y")).ok());
  ASSERT_TRUE(files().CreateDirectory(Path("x/y")).ok());
  Put("x/b", "b");
  Put("x/a", "a");
  EXPECT_THAT(*files().ListDirectory(Path("x")), ElementsAre("a", "b", "y"));
  ASSERT_TRUE(files().Rename(Path("x/a"), Path("x/b")).ok());
  EXPECT_EQ(*files().ReadFile(Path("x/b")), "a");
  EXPECT_THAT(*files().ListDirectory(Path("x")), ElementsAre("b", "y"));
  EXPECT_TRUE(files().SyncDirectory(Path("x")).ok());
  ASSERT_TRUE(files().RemoveTree(Path("x")).ok());
  EXPECT_FALSE(files().Exists(Path("x")));
}

TEST_P(FileSystemTest, AtomicWriteReplacesAndLeavesNothingElse) {
  ASSERT_TRUE(WriteFileAtomically(files(), Path("a"), Bytes("old")).ok());
  ASSERT_TRUE(WriteFileAtomically(files(), Path("a"), Bytes("new")).ok());
  EXPECT_EQ(*files().ReadFile(Path("a")), "new");
  EXPECT_THAT(*files().ListDirectory(root_.path()), ElementsAre("a"));
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Posix" : "Memory"; });

TEST_P(FileSystemTest, ALockHasOneHolderWhoIsNamed) {
  auto first = files().Lock(Path("lock"), "the first").value();
  EXPECT_EQ(files().Lock(Path("lock"), "the second").status(), absl::FailedPreconditionError("the first"));
  EXPECT_TRUE(files().Lock(Path("another"), "the second").ok());
  first.reset();
  auto third = files().Lock(Path("lock"), "3rd").value();
  EXPECT_EQ(*files().ReadFile(Path("lock")), "3rd") << "nothing of the longer name is left";
}

TEST_P(FileSystemTest, ALockNeedsItsDirectory) {
  EXPECT_TRUE(absl::IsNotFound(files().Lock(Path("none/lock"), "me").status()));
}

// A folder that others may write, too: what they put there under a name that is written leads nowhere.
class SharedFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(files_.CreateDirectory(root_.path()).ok());
    ASSERT_TRUE(WriteFileAtomically(files_, victim_, Bytes("mine")).ok());
  }
  void Link(const std::string& name) { ASSERT_EQ(symlink(victim_.c_str(), (root_ / name).c_str()), 0); }

  FileSystem& files_ = PosixFileSystem();
  const ScratchFolder root_;
  const std::string victim_ = root_ / "victim";
};

TEST_F(SharedFolderTest, ANewFileIsNotWrittenThroughALink) {
  Link("part");
  auto file = files_.CreateFile(root_ / "part").value();
  ASSERT_TRUE(file->Append(Bytes("theirs")).ok());
  EXPECT_EQ(*files_.ReadFile(victim_), "mine");
  EXPECT_EQ(*files_.ReadFile(root_ / "part"), "theirs");
}

TEST_F(SharedFolderTest, AnAtomicWriteFollowsNoLinkUnderEitherName) {
  Link("state");
  Link("state.tmp" + std::to_string(getpid()));
  ASSERT_TRUE(WriteFileAtomically(files_, root_ / "state", Bytes("theirs")).ok());
  EXPECT_EQ(*files_.ReadFile(victim_), "mine");
  EXPECT_EQ(*files_.ReadFile(root_ / "state"), "theirs");
}

TEST_F(SharedFolderTest, ALockIsNotWrittenIntoAnotherFile) {
  Link("lock");
  ASSERT_EQ(link(victim_.c_str(), (root_ / "second_name").c_str()), 0);
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  for (const char* name : {"lock", "second_name", "pipe"}) {
    const absl::Status refused = files_.Lock(root_ / name, "me").status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name << ": " << refused;
  }
  EXPECT_EQ(*files_.ReadFile(victim_), "mine");
}

TEST_F(SharedFolderTest, AShortFileIsAPlainFileAndAPipeDoesNotHoldItsReaderUp) {
  Link("link");
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {root_ / "link", root_ / "pipe", root_.path(), std::string("/dev/zero")}) {
    const absl::Status refused = files_.ReadShortFile(path, 64).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << path << ": " << refused;
  }
}

TEST(PosixFileLockTest, EndsWithItsProcess) {
  const ScratchFolder scratch;
  const std::string path = scratch / "lock";
  int locked[2], leave[2];
  ASSERT_EQ(pipe(locked), 0);
  ASSERT_EQ(pipe(leave), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(leave[1]);
    const auto lock = PosixFileSystem().Lock(path, "the child");
    char byte = lock.ok() ? 'y' : 'n';
    if (write(locked[1], &byte, 1) != 1 || read(leave[0], &byte, 1) != 0) _exit(1);
    _exit(0);  // without releasing anything
  }
  close(leave[0]);
  char byte = 0;
  ASSERT_EQ(read(locked[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(PosixFileSystem().Lock(path, "me").status(), absl::FailedPreconditionError("the child"));
  close(leave[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(PosixFileSystem().Lock(path, "me").ok());
  close(locked[0]);
  close(locked[1]);
}

TEST(WriteFileAtomicallyTest, AReaderSeesTheOldOrTheNewWhereverItStops) {
  MemoryFileSystem counted;
  ASSERT_TRUE(counted.CreateDirectory("d").ok());
  counted.Resume();
  ASSERT_TRUE(WriteFileAtomically(counted, "d/a", Bytes("new")).ok());
  const int64_t changes = counted.Resume();
  ASSERT_GE(changes, 4);
  for (int64_t stop = 0; stop <= changes; ++stop) {
    for (const bool power_failure : {false, true}) {
      MemoryFileSystem files;
      ASSERT_TRUE(files.WriteFile("d/a", "old").ok());
      files.StopAfter(stop);
      const absl::Status status = WriteFileAtomically(files, "d/a", Bytes("new"));
      files.Resume();
      if (power_failure) files.LosePower();
      const std::string content = *files.ReadFile("d/a");
      EXPECT_TRUE(content == "new" || (content == "old" && !status.ok()))
          << "stopped after " << stop << ": " << content;
    }
  }
}

TEST(WriteFileAtomicallyTest, AFullDiskLeavesTheOldFileAndNoTemporaryOne) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.WriteFile("d/a", "old").ok());
  files.FillAfter(2);
  EXPECT_TRUE(absl::IsResourceExhausted(WriteFileAtomically(files, "d/a", Bytes("new"))));
  EXPECT_THAT(*files.ListDirectory("d"), ElementsAre("a"));
  EXPECT_EQ(*files.ReadFile("d/a"), "old");
}

TEST(JoinPathTest, AnAbsoluteNameWins) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

}  // namespace
}  // namespace muster::file_system_test
