#include "muster/data/images.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::images_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

const std::string kDigits = SourceFolder() + "/examples/data/digits.csv";

class ImagesTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    scratch_.Write(name, content);
    return scratch_ / name;
  }

  // Writes a small set in MNIST's form: `train` and `test` images of `height` x 2 pixels, pixel = label.
  void WriteMnist(int train, int test, char height = 3) {
    WritePart("train", train, 3);
    WritePart("t10k", test, height);
  }
  void WritePart(const std::string& stem, int count, char height) {
    std::string images = {0, 0, 8, 3, 0, 0, 0, static_cast<char>(count), 0, 0, 0, height, 0, 0, 0, 2};
    std::string labels = {0, 0, 8, 1, 0, 0, 0, static_cast<char>(count)};
    for (int i = 0; i < count; ++i) {
      images += std::string(height * 2, static_cast<char>(i % 10));
      labels += static_cast<char>(i % 10);
    }
    Write(stem + "-images-idx3-ubyte", images);
    Write(stem + "-labels-idx1-ubyte", labels);
  }

  std::string MnistError() {
    const auto data = LoadMnist(directory_);
    EXPECT_FALSE(data.ok());
    return std::string(data.status().message());
  }
  std::string DigitsError(const std::string& content) {
    const auto data = LoadDigits(Write("bad.csv", content));
    EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(data.status().message());
  }

  const ScratchFolder scratch_;
  const std::string directory_ = scratch_.path();
};

TEST_F(ImagesTest, DigitsAreWholeScaledAndSplit) {
  const auto data = LoadDigits(kDigits).value();
  EXPECT_EQ(data.height, 8);
  EXPECT_EQ(data.width, 8);
  EXPECT_EQ(data.classes, 10);
  const LabelledRows& train = data.split.train;
  const LabelledRows& test = data.split.test;
  EXPECT_EQ(train.size(), 1438);
  EXPECT_EQ(test.size(), 359);
  EXPECT_EQ(train.width(), 64);
  // The file's first row is a 0 with the pixels 0 0 5 13 9 1 ... and isn't held out; the first held-out row is 4.
  EXPECT_EQ(train.labels()[0], 0);
  EXPECT_EQ(train.row(0)[3], 13.0f / 16.0f);
  EXPECT_EQ(test.labels()[0], 4);
  for (const LabelledRows* part : {&train, &test}) {
    EXPECT_THAT(part->features(), Each(testing::AllOf(testing::Ge(0.0f), testing::Le(1.0f))));
    EXPECT_EQ(*std::max_element(part->features().begin(), part->features().end()), 1.0f);
    for (int64_t digit = 0; digit < 10; ++digit) {
      const auto count = std::count(part->labels().begin(), part->labels().end(), digit);
      EXPECT_NEAR(static_cast<double>(count), part->size() / 10.0, part->size() / 50.0) << digit;
    }
  }
}

TEST_F(ImagesTest, DigitsWithOtherColumnsOrValuesAreRefused) {
  std::string row;
  for (int i = 0; i < 64; ++i) row += "16,";
  EXPECT_THAT(DigitsError("1,2,3\n"), HasSubstr("bad.csv, line 1: 3 columns where 65 are expected"));
  EXPECT_THAT(DigitsError(row + "9\n" + row + "10\n"),
              HasSubstr("bad.csv, line 2, column 65: 10 where a whole number"));
  EXPECT_THAT(DigitsError("17," + row.substr(3) + "9\n"), HasSubstr("line 1, column 1: 17 where"));
  EXPECT_THAT(DigitsError("1.5," + row.substr(3) + "9\n"), HasSubstr("line 1, column 1: 1.5 where"));
  EXPECT_THAT(DigitsError(row + "cat\n"), HasSubstr("line 1, column 65: \"cat\" is not a number"));
}

TEST_F(ImagesTest, MnistIsReadFromItsFourFiles) {
  WriteMnist(12, 4);
  const auto data = LoadMnist(directory_).value();
  EXPECT_EQ(data.split.train.size(), 12);
  EXPECT_EQ(data.split.test.size(), 4);
  EXPECT_EQ(data.height, 3);
  EXPECT_EQ(data.width, 2);
  EXPECT_EQ(data.split.train.labels()[11], 1);
  EXPECT_FLOAT_EQ(data.split.train.row(9)[5], 9 / 255.0f);
}

TEST_F(ImagesTest, MnistMayHaveTheOtherNames) {
  WriteMnist(3, 3);
  auto& files = PosixFileSystem();
  ASSERT_TRUE(files.Rename(directory_ + "/train-images-idx3-ubyte", directory_ + "/train-images-idx3-ubyte.gz").ok());
  ASSERT_TRUE(files.Rename(directory_ + "/t10k-labels-idx1-ubyte", directory_ + "/t10k-labels.idx1-ubyte").ok());
  EXPECT_TRUE(LoadMnist(directory_).ok());
}

TEST_F(ImagesTest, MnistThatDoesNotBelongTogetherIsRefused) {
  EXPECT_THAT(MnistError(), HasSubstr(directory_ + "/train-images-idx3-ubyte: there is no such file"));
  WriteMnist(3, 3, 4);
  EXPECT_THAT(MnistError(), HasSubstr("t10k-images-idx3-ubyte: images of 4x2 where"));
  WriteMnist(3, 3);
  Write("t10k-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\2\1\1", 10));
  EXPECT_THAT(MnistError(), HasSubstr("t10k-labels-idx1-ubyte: 2 labels for the 3 images"));
  Write("t10k-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\3\1\12\1", 11));
  EXPECT_THAT(MnistError(), HasSubstr("label 1 is 10 where 0 to 9"));
  WriteMnist(3, 3);
  Write("train-images-idx3-ubyte", std::string("\0\0\10\1\0\0\0\1\1", 9));
  EXPECT_THAT(MnistError(), HasSubstr("train-images-idx3-ubyte: 1 dimensions where images need 3"));
}

TEST(LabelledRows, RefusesSizesThatDisagree) {
  EXPECT_FALSE(LabelledRows::Create(2, {1, 2, 3}, {0, 1}).ok());
  EXPECT_FALSE(LabelledRows::Create(2, {1, 2}, {0, 1}).ok());
  EXPECT_FALSE(LabelledRows::Create(0, {1, 2}, {}).ok());
  EXPECT_TRUE(LabelledRows::Create(2, {1, 2}, {0}).ok());
}

TEST(LabelledRows, SplitKeepsOrder) {
  const LabelledRows all = *LabelledRows::Create(1, {10, 11, 12}, {0, 1, 2});
  const Split split = SplitRows(all, [](size_t row) { return row == 1; });
  EXPECT_THAT(split.train.labels(), testing::ElementsAre(0, 2));
  EXPECT_THAT(split.train.features(), testing::ElementsAre(10, 12));
  EXPECT_THAT(split.test.labels(), testing::ElementsAre(1));
}

}  // namespace
}  // namespace muster::images_test
