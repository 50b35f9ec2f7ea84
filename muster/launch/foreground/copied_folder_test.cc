#include "muster/launch/foreground/copied_folder.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "muster/base/testing/scratch_folder.h"

namespace muster::copied_folder_test {
namespace {

TEST(CopiedFolderTest, TasksWorkWhereTheCommandRuns) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "sub");
  std::ofstream(scratch / "sub/train.sh") << "exit 0";
  const std::string& root = scratch.path();
  const auto below = CopiedFolder::Take(root, scratch / "sub");
  ASSERT_TRUE(below.ok()) << below.status();
  EXPECT_EQ(below->WorkFolder({.work = "/cache/job"}, scratch / "sub"), "/cache/job/sub");
  EXPECT_EQ(below->WorkFolder({.work = ""}, scratch / "sub"), scratch / "sub");
  const auto whole = CopiedFolder::Take(root, root);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->WorkFolder({.work = "/cache/job"}, root), "/cache/job");
}

TEST(CopiedFolderTest, TheNonceFileIsNoneOfTheFilesAndGoesWithTheObject) {
  const ScratchFolder scratch;
  std::ofstream(scratch / "train.sh") << "exit 0";
  const std::string& root = scratch.path();
  {
    const auto taken = CopiedFolder::Take(root, root);
    ASSERT_TRUE(taken.ok()) << taken.status();
    ASSERT_EQ(taken->tree.files.size(), 1);
    EXPECT_EQ(taken->tree.files[0].file.path, "train.sh");
    EXPECT_TRUE(std::filesystem::exists(taken->nonce->path()));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root), std::filesystem::directory_iterator()), 1);
}

TEST(CopiedTextTest, SaysWhoSeesTheFolderAndWhatWasCopied) {
  EXPECT_EQ(CopiedText({{"h1", {.work = ""}}, {"h2", {.work = "/w", .seen = {}, .files = 1, .bytes = 2000}}}),
            "h1 sees the folder; copied 1 file (2.0 KB) to h2");
}

}  // namespace
}  // namespace muster::copied_folder_test
