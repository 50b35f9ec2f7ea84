// What a host has written comes here, and what it says can't do harm.
#include "muster/launch/project/folder_receiver.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "muster/base/status_macros.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/project/tree_hash.h"
#include "muster/launch/project/tree_sender.h"
#include "muster/transport/messages/codec.h"

namespace muster::folder_receiver_test {
namespace {

using ::testing::HasSubstr;

class FolderReceiverTest : public ::testing::Test {
 protected:
  FolderReceiverTest() {
    there_.Write("model/part-0", std::string(300'000, 'w'));
    there_.Write("metrics.jsonl", "{}\n");
    there_.Write("empty", "");
    std::filesystem::create_directory(there_ / "nothing");
  }

  std::string TextOf(const std::string& name) const { return PosixFileSystem().ReadFile(here_ / name).value(); }

  // Brings the folder here; returns the first error.
  absl::Status Bring() {
    const DescribedTree tree = DescribeTree(there_.path(), {.which = ListedFiles::kAll}).value();
    TreeSender sender({.job = "send"}, tree);
    receiver_.emplace(here_.path());
    for (bool any = true; any;) {
      const std::string next = sender.Next().value();
      RETURN_IF_ERROR(receiver_->Take(next));
      while (receiver_->has_work()) RETURN_IF_ERROR(receiver_->Work());
      const std::string output = receiver_->Output();
      RETURN_IF_ERROR(sender.Take(output));
      any = !next.empty() || !output.empty();
    }
    EXPECT_EQ(sender.done(), receiver_->done());
    return absl::OkStatus();
  }

  // Tells the receiver of these files, as a host might that isn't honest.
  absl::Status Tell(std::vector<TreeFile> files) {
    FolderReceiver receiver(here_.path());
    TreeHash hash;
    for (const TreeFile& file : files) hash.Add(file.file, file.digest);
    EXPECT_EQ(receiver.Take(kTransferGreeting), absl::OkStatus());
    EXPECT_EQ(receiver.Take(TransferFrameOf(TransferKind::kFiles, Encode(FilesMessage{std::move(files)}))),
              absl::OkStatus());
    return receiver.Take(
        TransferFrameOf(TransferKind::kAssemble, Encode(AssembleMessage{.job = "j", .hash = hash.Finish()})));
  }
  static TreeFile File(const std::string& path) {
    return {.file = {.path = path, .bytes = 1}, .digest = std::string(kDigestBytes, 'd')};
  }

  const ScratchFolder there_, here_;
  std::optional<FolderReceiver> receiver_;
};

TEST_F(FolderReceiverTest, AllFilesComeAndOthersStay) {
  here_.Write("own", "mine");
  here_.Write("metrics.jsonl", "old");
  ASSERT_EQ(Bring(), absl::OkStatus());
  ASSERT_TRUE(receiver_->done());
  EXPECT_EQ(receiver_->files(), 3U);
  EXPECT_EQ(receiver_->bytes(), 300'003U);
  EXPECT_EQ(TextOf("model/part-0"), std::string(300'000, 'w'));
  EXPECT_EQ(TextOf("metrics.jsonl"), "{}\n");
  EXPECT_EQ(TextOf("empty"), "");
  EXPECT_EQ(TextOf("own"), "mine");
  EXPECT_TRUE(std::filesystem::is_directory(here_ / "nothing"));
}

TEST_F(FolderReceiverTest, OnlyWhatHasChangedComesAgain) {
  ASSERT_EQ(Bring(), absl::OkStatus());
  there_.Write("metrics.jsonl", "[]\n");
  ASSERT_EQ(Bring(), absl::OkStatus());
  EXPECT_EQ(receiver_->files(), 1U);
  EXPECT_EQ(TextOf("metrics.jsonl"), "[]\n");
}

TEST_F(FolderReceiverTest, LinksAreCountedAndNotMade) {
  std::filesystem::create_symlink("/etc/passwd", there_ / "link");
  ASSERT_EQ(Bring(), absl::OkStatus());
  EXPECT_EQ(receiver_->links(), 1U);
  EXPECT_FALSE(std::filesystem::is_symlink(here_ / "link"));
}

TEST_F(FolderReceiverTest, NothingIsWrittenOutsideOfTheFolder) {
  for (const char* path : {"../x", "/tmp/x", "a/../../x", ""}) EXPECT_FALSE(Tell({File(path)}).ok()) << path;
  const ScratchFolder elsewhere;
  std::filesystem::create_symlink(elsewhere.path(), here_ / "model");
  const absl::Status through_link = Bring();
  EXPECT_THAT(std::string(through_link.message()), HasSubstr("/model is no folder here, but is one on the host"));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
  // A link in place of a file is replaced, not written through.
  elsewhere.Write("secret", "kept");
  std::filesystem::remove(here_ / "model");
  std::filesystem::remove(here_ / "metrics.jsonl");
  std::filesystem::create_symlink(elsewhere / "secret", here_ / "metrics.jsonl");
  ASSERT_EQ(Bring(), absl::OkStatus());
  EXPECT_EQ(TextOf("metrics.jsonl"), "{}\n");
  EXPECT_EQ(PosixFileSystem().ReadFile(elsewhere / "secret").value(), "kept");
}

TEST_F(FolderReceiverTest, ContentsThatArentThoseAnnouncedLeaveNothing) {
  here_.Write("f", "old");
  receiver_.emplace(here_.path());
  FolderReceiver& receiver = *receiver_;
  const TreeFile file = {.file = {.path = "f", .bytes = 4}, .digest = std::string(kDigestBytes, 'd')};
  TreeHash hash;
  hash.Add(file.file, file.digest);
  ASSERT_TRUE(receiver.Take(kTransferGreeting).ok());
  ASSERT_TRUE(receiver.Take(TransferFrameOf(TransferKind::kFiles, Encode(FilesMessage{{file}}))).ok());
  ASSERT_TRUE(
      receiver
          .Take(TransferFrameOf(TransferKind::kAssemble, Encode(AssembleMessage{.job = "j", .hash = hash.Finish()})))
          .ok());
  while (receiver.has_work()) ASSERT_TRUE(receiver.Work().ok());
  EXPECT_EQ(receiver.Take(TransferFrameOf(TransferKind::kContents, Encode(ContentsMessage{.bytes = "evil"}))).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(TextOf("f"), "old");
  EXPECT_FALSE(receiver.done());
  receiver_.reset();
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(here_.path())) ++entries;
  EXPECT_EQ(entries, 1U);
}

}  // namespace
}  // namespace muster::folder_receiver_test
