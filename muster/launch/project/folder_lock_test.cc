#include "muster/launch/project/folder_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "muster/base/testing/scratch_folder.h"

namespace muster::folder_lock_test {
namespace {

bool IsFree(const std::string& folder) {
  const bool held = FolderLock::IsHeld(folder);
  EXPECT_EQ(FolderLock::Take(folder, absl::ZeroDuration()).ok(), !held);
  return !held;
}

TEST(FolderLock, IsHeldByOneUntilItGoes) {
  const ScratchFolder scratch;
  const std::string folder = scratch.path() + "/a/b";
  auto first = FolderLock::Take(folder, absl::ZeroDuration()).value();
  const auto second = FolderLock::Take(folder, absl::ZeroDuration());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  EXPECT_NE(second.status().message().find(folder), std::string::npos) << second.status();
  {
    const FolderLock moved = std::move(first);
    EXPECT_FALSE(IsFree(folder));
  }
  EXPECT_TRUE(IsFree(folder));
  EXPECT_FALSE(FolderLock::IsHeld(scratch.path()));
  EXPECT_FALSE(scratch.Has(kFolderLockName));
}

TEST(FolderLock, EndsWithItsProcess) {
  const ScratchFolder scratch;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = FolderLock::Take(scratch.path(), absl::ZeroDuration());
    const char said = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &said, 1) == 1) pause();
    _exit(1);
  }
  char said = 0;
  ASSERT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  EXPECT_FALSE(IsFree(scratch.path()));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(IsFree(scratch.path()));
  close(ready[0]);
  close(ready[1]);
}

TEST(FolderLock, WhereThereAreNoLocksItSaysWhatHas) {
  const ScratchFolder scratch;
  const auto no_locks = [](int /*fd*/, int /*operation*/) {
    errno = ENOSYS;
    return -1;
  };
  const absl::Status taken = FolderLock::Take(scratch.path(), absl::InfiniteDuration(), no_locks).status();
  EXPECT_TRUE(absl::IsUnimplemented(taken)) << taken;
  EXPECT_NE(taken.message().find("set MUSTER_HOME"), std::string::npos) << taken;
}

TEST(FolderLock, NamesAFolderThatCannotBeMade) {
  const ScratchFolder scratch;
  scratch.Write("file", "");
  const auto lock = FolderLock::Take(scratch.path() + "/file/below", absl::ZeroDuration());
  EXPECT_NE(lock.status().message().find("file/below"), std::string::npos) << lock.status();
}

}  // namespace
}  // namespace muster::folder_lock_test
