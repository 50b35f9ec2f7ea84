#include "muster/launch/project/remove_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "muster/base/testing/scratch_folder.h"

namespace muster::remove_folder_test {
namespace {

TEST(RemoveFolder, TakesFoldersThatMayNotBeWrittenToAndLeavesWhatLinksLeadTo) {
  const ScratchFolder scratch;
  scratch.Write("elsewhere/kept", "x");
  scratch.Write("gone/deep/file", "x");
  std::filesystem::create_symlink(scratch / "elsewhere", scratch / "gone/link");
  ASSERT_EQ(chmod((scratch / "gone/deep").c_str(), 0555), 0);
  ASSERT_EQ(chmod((scratch / "elsewhere").c_str(), 0755), 0);
  const absl::Status removed = RemoveFolder(scratch / "gone");
  EXPECT_TRUE(removed.ok()) << removed;
  EXPECT_FALSE(scratch.Has("gone"));
  EXPECT_EQ(scratch.Read("elsewhere/kept"), "x");
  EXPECT_TRUE(RemoveFolder(scratch / "gone").ok());
}

TEST(RemoveFolder, CountsWhatWouldBeFreed) {
  const ScratchFolder scratch;
  scratch.Write("elsewhere/shared", "123456789");
  scratch.Write("folder/a", "123");
  scratch.Write("folder/deep/b", "4567");
  std::filesystem::create_hard_link(scratch / "elsewhere/shared", scratch / "folder/shared");
  std::filesystem::create_symlink(scratch / "elsewhere", scratch / "folder/link");
  EXPECT_EQ(BytesOfFolder(scratch / "folder"), 7);
  EXPECT_EQ(BytesOfFolder(scratch / "none"), 0);
}

}  // namespace
}  // namespace muster::remove_folder_test
