#include "muster/checkpoint/checkpoint_verification.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/checkpoint/checkpoint_listing.h"
#include "muster/checkpoint/testing/checkpoint_test_data.h"

namespace muster::checkpoint_verification_test {
namespace {

using ::testing::HasSubstr;

class CheckpointVerificationTest : public ::testing::Test {
 protected:
  CheckpointVerificationTest() {
    EXPECT_TRUE(files_.CreateDirectory("d").ok());
    EXPECT_TRUE(Save(files_, "d", 100, "a").ok());
    EXPECT_TRUE(Save(files_, "d", 200, "b").ok());
  }
  // Returns the messages of the newest checkpoint's damaged files.
  std::string Damage() {
    std::string messages;
    for (const VerifiedFile& file : VerifyCheckpoint(files_, "d/model.ckpt-200"))
      if (!file.status.ok()) absl::StrAppend(&messages, file.status.message(), "\n");
    return messages;
  }
  std::string Part(int part) { return JoinPath("d", PartFileName(200, part, 2)); }

  MemoryFileSystem files_;
  const std::string manifest_ = "d/model.ckpt-200.manifest.json";
};

TEST_F(CheckpointVerificationTest, EveryFileIsNamed) {
  const auto verified = VerifyCheckpoint(files_, "d/model.ckpt-200");
  ASSERT_EQ(verified.size(), 3u);
  EXPECT_EQ(verified[0].path, manifest_);
  EXPECT_EQ(verified[1].path, Part(0));
  EXPECT_EQ(verified[2].path, Part(1));
  for (const VerifiedFile& file : verified) {
    EXPECT_EQ(file.status, absl::OkStatus());
    EXPECT_EQ(file.bytes, *files_.FileSize(file.path));
  }
}

TEST_F(CheckpointVerificationTest, AnyFlippedByteIsFound) {
  for (const std::string& path : {manifest_, Part(0), Part(1)}) {
    for (uint64_t i = 0; i < *files_.FileSize(path); ++i) {
      ASSERT_TRUE(files_.Corrupt(path, i, 0x20).ok());
      EXPECT_THAT(Damage(), HasSubstr(path)) << "byte " << i;
      ASSERT_TRUE(files_.Corrupt(path, i, 0x20).ok());
    }
  }
  EXPECT_EQ(Damage(), "");
}

TEST_F(CheckpointVerificationTest, AllDamagedFilesAreNamed) {
  ASSERT_TRUE(files_.Remove(Part(0)).ok());
  ASSERT_TRUE(files_.Truncate(Part(1), 20).ok());
  EXPECT_THAT(Damage(), HasSubstr(Part(0) + " is missing"));
  EXPECT_THAT(Damage(), HasSubstr(Part(1) + " is damaged: has 20 bytes, wanted"));
}

TEST_F(CheckpointVerificationTest, AManifestThatContradictsItsParts) {
  auto manifest = *ParseManifest(*files_.ReadFile(manifest_), manifest_);
  manifest.variables[1].dtype = DType::kInt64;
  ASSERT_TRUE(files_.WriteFile(manifest_, SerializeManifest(manifest)).ok());
  EXPECT_THAT(Damage(), HasSubstr("tensor 's' of variable 's' is float64 [], wanted int64 []"));
}

TEST_F(CheckpointVerificationTest, TheListMarksWhatIsDamaged) {
  ASSERT_TRUE(files_.Truncate(Part(1), 20).ok());
  ASSERT_TRUE(Save(files_, "d", 300, "c").ok());
  ASSERT_TRUE(files_.Truncate("d/model.ckpt-300.manifest.json", 20).ok());
  const auto list = ListWithContents(files_, "d").value();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.at(0).name, "model.ckpt-100");
  EXPECT_EQ(list.at(0).damage, absl::OkStatus());
  EXPECT_EQ(list.at(0).manifest.saved_at, 100000);
  uint64_t bytes = 0;
  for (const VerifiedFile& file : VerifyCheckpoint(files_, "d/model.ckpt-100")) bytes += file.bytes;
  EXPECT_EQ(list.at(0).bytes, bytes);
  EXPECT_FALSE(list.at(1).newest);
  EXPECT_THAT(std::string(list.at(1).damage.message()), HasSubstr(Part(1)));
  EXPECT_TRUE(list.at(2).newest);
  EXPECT_EQ(list.at(2).global_step, 300);
  EXPECT_THAT(std::string(list.at(2).damage.message()), HasSubstr("d/model.ckpt-300.manifest.json is damaged"));
  EXPECT_TRUE(absl::IsNotFound(ListWithContents(files_, "nowhere").status()));
}

}  // namespace
}  // namespace muster::checkpoint_verification_test
