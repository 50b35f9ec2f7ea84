#include "muster/data/sources/idx_source.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/drawn_examples.h"
#include "muster/data/testing/gzipped.h"

namespace muster::idx_source_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::UnorderedElementsAre;

std::string Idx(const std::vector<uint32_t>& shape, const std::vector<uint8_t>& elements) {
  std::string idx = {0, 0, 8, static_cast<char>(shape.size())};
  for (const uint32_t size : shape)
    for (int shift = 24; shift >= 0; shift -= 8) idx += static_cast<char>(size >> shift);
  return idx + std::string(elements.begin(), elements.end());
}

// Counts how often each file is read.
class CountingFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    ++reads;
    return ForwardingFileSystem::ReadFile(path);
  }
  int reads = 0;
};

class IdxSourceTest : public ::testing::Test {
 protected:
  // Three images of 2 x 2, labelled 7, 8, 9.
  IdxSourceTest() {
    Write("d/images", Idx({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255}));
    Write("d/labels", Idx({3}, {7, 8, 9}));
  }
  void Write(const std::string& path, const std::string& content) { EXPECT_TRUE(files_.WriteFile(path, content).ok()); }
  Dataset Data() { return Dataset::FromIdx("d/images", "d/labels", files_); }

  MemoryFileSystem files_;
};

TEST_F(IdxSourceTest, EveryRowIsAnImageAndItsLabel) {
  const auto drawn = DrawnExamples(Data()).value();
  ASSERT_EQ(drawn.size(), 3);
  const Example& last = drawn.back();
  ASSERT_EQ(last.features.size(), 1);
  EXPECT_EQ(last.features[0].name, "image");
  EXPECT_THAT(last.features[0].value.shape(), ElementsAre(2, 2));
  EXPECT_THAT(ValuesOf<uint8_t>(last.features[0].value), ElementsAre(9, 10, 11, 255));
  ASSERT_TRUE(last.has_labels);
  EXPECT_TRUE(last.labels.shape().empty());
  EXPECT_THAT(ValuesOf<int64_t>(last.labels), ElementsAre(9));
  EXPECT_THAT(Data().Describe(), HasSubstr("idx(images, labels)"));
}

TEST_F(IdxSourceTest, PackedFilesAreTheSame) {
  Write("d/images", Gzip(Idx({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255})));
  Write("d/labels", Gzip(Idx({3}, {7, 8, 9})));
  const auto drawn = DrawnExamples(Data()).value();
  ASSERT_EQ(drawn.size(), 3);
  EXPECT_THAT(ValuesOf<uint8_t>(drawn.back().features[0].value), ElementsAre(9, 10, 11, 255));
}

TEST_F(IdxSourceTest, RowsAreReadByNumberAndGatheredInBatches) {
  const Dataset data = Data().Shuffle({.seed = 3}).Batch(3);
  const auto drawn = DrawnExamples(data).value();
  ASSERT_EQ(drawn.size(), 1);
  const Example& batch = drawn.front();
  EXPECT_THAT(batch.features[0].value.shape(), ElementsAre(3, 2, 2));
  EXPECT_THAT(ValuesOf<int64_t>(batch.labels), UnorderedElementsAre(7, 8, 9));
  for (size_t i = 0; i < 3; ++i)  // each with its label
    EXPECT_EQ(batch.features[0].value.As<uint8_t>()[4 * i], 4 * (batch.labels.As<int64_t>()[i] - 7) + 1);
}

TEST_F(IdxSourceTest, FilesAreReadOnceForAllStreamsAndOnlyWhenTheyAreWanted) {
  CountingFiles files(files_);
  const Dataset data = Dataset::FromIdx("d/images", "d/labels", files);
  EXPECT_EQ(files.reads, 0);
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(DrawnExamples(data)->size(), 3);
  EXPECT_EQ(DrawnExamples(data.Batch(2))->size(), 2);
  EXPECT_EQ(files.reads, 2);
}

TEST_F(IdxSourceTest, WhatWasMissingMayAppear) {
  const Dataset data = Dataset::FromIdx("d/later", "d/labels", files_);
  EXPECT_FALSE(data.size().has_value());
  const absl::Status error = DrawingError(data);
  EXPECT_TRUE(absl::IsNotFound(error)) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("d/later"));
  Write("d/later", Idx({3, 1}, {1, 2, 3}));
  EXPECT_EQ(data.size(), 3);
  EXPECT_TRUE(DrawingError(data).ok());
}

TEST_F(IdxSourceTest, FilesThatDoNotBelongTogetherAreNamed) {
  Write("d/two", Idx({2}, {7, 8}));
  const absl::Status count = DrawingError(Dataset::FromIdx("d/images", "d/two", files_));
  EXPECT_TRUE(absl::IsInvalidArgument(count)) << count;
  EXPECT_THAT(std::string(count.message()), HasSubstr("d/two: 2 labels for the 3 images of d/images"));
  const absl::Status swapped = DrawingError(Dataset::FromIdx("d/labels", "d/images", files_));
  EXPECT_TRUE(absl::IsInvalidArgument(swapped)) << swapped;
  EXPECT_THAT(std::string(swapped.message()),
              HasSubstr("d/images: 3 dimensions where labels need 1; is it the file of the images?"));
}

TEST_F(IdxSourceTest, DamagedFilesAreNamed) {
  Write("d/cut", Idx({3, 2, 2}, {1, 2, 3}));
  const absl::Status cut = DrawingError(Dataset::FromIdx("d/cut", "d/labels", files_));
  EXPECT_TRUE(absl::IsDataLoss(cut)) << cut;
  EXPECT_THAT(std::string(cut.message()), HasSubstr("d/cut"));
  Write("d/text", "1,2,3\n");
  const absl::Status text = DrawingError(Dataset::FromIdx("d/images", "d/text", files_));
  EXPECT_TRUE(absl::IsInvalidArgument(text)) << text;
  EXPECT_THAT(std::string(text.message()), HasSubstr("d/text: not an IDX file"));
}

}  // namespace
}  // namespace muster::idx_source_test
