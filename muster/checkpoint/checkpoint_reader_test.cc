#include "muster/checkpoint/checkpoint_reader.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/testing/checkpoint_test_data.h"

namespace muster::checkpoint_reader_test {
namespace {

using ::testing::HasSubstr;

class CheckpointReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(files_.CreateDirectory("d").ok());
    ASSERT_TRUE(Save(files_, "d", 100, "a").ok());
    reader_ = CheckpointReader::Open(files_, "d/model.ckpt-100").value();
  }
  std::string PartPath(int part) { return JoinPath("d", PartFileName(100, part, 2)); }
  absl::Status Reopen(bool verify = true) {
    return CheckpointReader::Open(files_, "d/model.ckpt-100", {.verify_checksums = verify}).status();
  }

  MemoryFileSystem files_;
  std::unique_ptr<CheckpointReader> reader_;
};

TEST_F(CheckpointReaderTest, VariablesAndSlotsAreWhole) {
  std::vector<float> w(10), m(10);
  ASSERT_TRUE(reader_->ReadVariable("w", AsMutableBytes(w.data(), 10)).ok());
  ASSERT_TRUE(reader_->ReadSlot("w", "m", AsMutableBytes(m.data(), 10)).ok());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(w[i], WeightOf(100, i));
    EXPECT_EQ(m[i], -WeightOf(100, i));
  }
  double s = 0;
  ASSERT_TRUE(reader_->ReadVariable("s", AsMutableBytes(&s, 1)).ok());
  EXPECT_EQ(s, 12.5);
  EXPECT_EQ(reader_->manifest().global_step, 100);
  EXPECT_EQ(reader_->path(), "d/model.ckpt-100");
  EXPECT_TRUE(CheckpointReader::Open(files_, "d/model.ckpt-100.manifest.json").ok());
}

// Each time that a manifest is read, a save of the same step replaces the files that it names, a few times.
class ReplacedFiles final : public ForwardingFileSystem {
 public:
  ReplacedFiles(FileSystem& files, int saves) : ForwardingFileSystem(files), files_(files), saves_(saves) {}
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    auto text = ForwardingFileSystem::ReadFile(path);
    if (!absl::EndsWith(path, kManifestSuffix) || saves_ == 0) return text;
    const std::string id = absl::StrCat("b", saves_--);
    EXPECT_TRUE(Save(files_, "d", 100, id).ok());
    EXPECT_TRUE(RemoveLeftovers(files_, "d", id).ok());
    return text;
  }

 private:
  FileSystem& files_;
  int saves_;
};

TEST_F(CheckpointReaderTest, AStepThatIsSavedAgainMeanwhileIsReadAsItIsThen) {
  for (const int saves : {1, 3}) {
    ReplacedFiles files(files_, saves);
    const auto reader = CheckpointReader::Open(files, "d/model.ckpt-100");
    ASSERT_TRUE(reader.ok()) << reader.status();
    float first = 0;
    ASSERT_TRUE((*reader)->ReadVariableRange("w", 0, 1, AsMutableBytes(&first, 1)).ok());
    EXPECT_EQ(first, WeightOf(100, 0));
  }
}

TEST_F(CheckpointReaderTest, AnyRangeForAnyOtherNumberOfServers) {
  for (int first = 0; first <= 10; ++first) {
    for (int count = 0; first + count <= 10; ++count) {
      std::vector<float> w(count), m(count);
      ASSERT_TRUE(reader_->ReadVariableRange("w", first, count, AsMutableBytes(w.data(), count)).ok());
      ASSERT_TRUE(reader_->ReadSlotRange("w", "m", first, count, AsMutableBytes(m.data(), count)).ok());
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(w[i], WeightOf(100, first + i));
        EXPECT_EQ(m[i], -WeightOf(100, first + i));
      }
    }
  }
}

TEST_F(CheckpointReaderTest, ACounterOfARangeIsTheLargestThatCoversIt) {
  // Counters: 100 for elements 0 to 3, 105 for 4 and 5; 102 for 6 to 9.
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 0, 4), 100);
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 0, 5), 105);
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 5, 1), 105);
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 6, 4), 102);
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 5, 2), 105);
  EXPECT_EQ(*reader_->ReadCounter("w", "t", 0, 10), 105);
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->ReadCounter("w", "t", 0, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->ReadCounter("w", "t", 9, 2).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->ReadCounter("w", "m", 0, 4).status()));
}

TEST_F(CheckpointReaderTest, WhatIsNotThereIsNamed) {
  std::vector<float> w(11);
  const MutableByteSpan ten = AsMutableBytes(w.data(), 10);
  const auto message = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_THAT(message(reader_->ReadVariable("x", ten)), HasSubstr("d/model.ckpt-100 has no variable 'x'"));
  EXPECT_THAT(message(reader_->ReadSlot("w", "x", ten)), HasSubstr("variable 'w' has no slot 'x'"));
  EXPECT_TRUE(absl::IsNotFound(reader_->ReadSlot("x", "m", ten)));
  EXPECT_THAT(message(reader_->ReadVariable("w", AsMutableBytes(w.data(), 11))), HasSubstr("44 bytes, wanted for 40"));
  EXPECT_THAT(message(reader_->ReadVariableRange("w", 5, 6, ten)), HasSubstr("has 10 elements, asked for were 6 from"));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->ReadVariableRange("w", -1, 1, ten)));
  EXPECT_TRUE(absl::IsInvalidArgument(reader_->ReadVariableRange("w", 1, INT64_MAX, ten)));
  EXPECT_THAT(message(reader_->ReadSlot("w", "t", ten)),
              HasSubstr("one value per 4 elements: read it with ReadCounter"));
  EXPECT_TRUE(absl::IsNotFound(CheckpointReader::Open(files_, "d/model.ckpt-7").status()));
}

TEST_F(CheckpointReaderTest, DamagedPartsAreNamed) {
  const auto expect_data_loss = [&](const absl::Status& status, const std::string& part) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  };
  const std::string good = *files_.ReadFile(PartPath(1));
  for (size_t at = 0; at < good.size(); ++at) {
    ASSERT_TRUE(files_.Corrupt(PartPath(1), at, 0x40).ok());
    const absl::Status status = Reopen();
    EXPECT_FALSE(status.ok()) << at;
    EXPECT_THAT(std::string(status.message()), HasSubstr(PartPath(1)));
    ASSERT_TRUE(files_.WriteFile(PartPath(1), good).ok());
  }
  ASSERT_TRUE(files_.Truncate(PartPath(1), good.size() - 1).ok());
  expect_data_loss(Reopen(/*verify=*/false), PartPath(1));
  ASSERT_TRUE(files_.Remove(PartPath(1)).ok());
  expect_data_loss(Reopen(), PartPath(1));
}

TEST_F(CheckpointReaderTest, WithoutVerificationTheBytesAreNotRead) {
  const uint64_t last = *files_.FileSize(PartPath(0)) - 1;
  ASSERT_TRUE(files_.Corrupt(PartPath(0), last, 1).ok());
  EXPECT_TRUE(Reopen(/*verify=*/false).ok());
  EXPECT_TRUE(absl::IsDataLoss(Reopen(/*verify=*/true)));
}

TEST_F(CheckpointReaderTest, APartThatContradictsTheManifestIsRefused) {
  const auto refusal = [&](void (*change)(ManifestVariable&)) {
    Manifest manifest = reader_->manifest();
    change(manifest.variables[0]);
    const std::string text = SerializeManifest(manifest);
    EXPECT_TRUE(files_.WriteFile("d/model.ckpt-100.manifest.json", text).ok());
    const absl::Status status = Reopen();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices[0].tensor = std::string("x"); }),
              HasSubstr("tensor 'x' of variable 'w' is"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.dtype = DType::kInt32; }),
              HasSubstr("is float32 [3,2], wanted int32"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slots[1].stride = 3; }),
              HasSubstr("'w', slot 't' is int64 [1], wan"));
  EXPECT_THAT(refusal([](ManifestVariable& w) { w.slices[0].shape = {6}; }), HasSubstr("wanted float32 [6]"));
}

}  // namespace
}  // namespace muster::checkpoint_reader_test
