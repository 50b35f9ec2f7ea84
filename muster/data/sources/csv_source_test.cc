#include "muster/data/sources/csv_source.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/forwarding_file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/drawn_examples.h"

namespace muster::csv_source_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

class CsvSourceTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) { ASSERT_TRUE(files_.WriteFile(path, content).ok()); }
  std::vector<Example> Drawn(std::vector<std::string> paths, CsvColumns columns = {}) {
    return DrawnExamples(Dataset::FromCsv(std::move(paths), std::move(columns), files_)).value();
  }
  absl::Status Error(std::vector<std::string> paths, CsvColumns columns = {}) {
    const absl::Status error = DrawingError(Dataset::FromCsv(std::move(paths), std::move(columns), files_));
    EXPECT_FALSE(error.ok());
    return error;
  }
  // Returns the error for one file with this content.
  std::string ErrorOf(const std::string& content, CsvColumns columns = {}) {
    Write("d/file.csv", content);
    const absl::Status error = Error({"d/file.csv"}, std::move(columns));
    EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
    return std::string(error.message());
  }

  MemoryFileSystem files_;
};

std::vector<float> Features(const Example& example) { return ValuesOf<float>(example.features.at(0).value); }
int64_t Label(const Example& example) { return example.labels.As<int64_t>()[0]; }

TEST_F(CsvSourceTest, AllColumnsButTheLastAreTheFeatureAndTheLastIsTheLabel) {
  Write("d/a.csv", "width,height,kind\n1,2.5,0\n-3,4,7\n");
  const auto drawn = Drawn({"d/a.csv"});
  ASSERT_EQ(drawn.size(), 2);
  ASSERT_EQ(drawn[1].features.size(), 1);
  EXPECT_EQ(drawn[1].features[0].name, "features");
  EXPECT_THAT(drawn[1].features[0].value.shape(), ElementsAre(2));
  EXPECT_THAT(Features(drawn[0]), ElementsAre(1, 2.5));
  EXPECT_THAT(Features(drawn[1]), ElementsAre(-3, 4));
  ASSERT_TRUE(drawn[1].has_labels);
  EXPECT_TRUE(drawn[1].labels.shape().empty());
  EXPECT_EQ(Label(drawn[0]), 0);
  EXPECT_EQ(Label(drawn[1]), 7);
}

TEST_F(CsvSourceTest, ColumnsAreAskedForByNameOrNumberInAnyOrder) {
  Write("d/a.csv", "id,w,h,kind,note\nx1,1,2,0.5,\"one, two\"\nx2,3,4,1.5,\n");
  const auto drawn =
      Drawn({"d/a.csv"},
            {.groups = {{"size", {"h", "w"}}, {"again", {"-3"}}}, .label = "kind", .label_dtype = DType::kFloat32});
  ASSERT_EQ(drawn.size(), 2);
  ASSERT_EQ(drawn[0].features.size(), 2);
  EXPECT_EQ(drawn[0].features[0].name, "size");
  EXPECT_EQ(drawn[0].features[1].name, "again");
  EXPECT_THAT(ValuesOf<float>(drawn[1].features[0].value), ElementsAre(4, 3));
  EXPECT_THAT(ValuesOf<float>(drawn[1].features[1].value), ElementsAre(4));
  EXPECT_THAT(ValuesOf<float>(drawn[1].labels), ElementsAre(1.5));
}

TEST_F(CsvSourceTest, ANumberIsANameFirst) {
  Write("d/a.csv", "2,1,0\n10,20,30\n");
  const auto drawn =
      Drawn({"d/a.csv"}, {.groups = {{"x", {"0"}}}, .label = "", .header = CsvOptions::Header::kPresent});
  ASSERT_EQ(drawn.size(), 1);
  EXPECT_THAT(Features(drawn[0]), ElementsAre(30));
  EXPECT_FALSE(drawn[0].has_labels);
}

TEST_F(CsvSourceTest, FilesAreReadOneAfterTheOtherAndMayHaveOneHeader) {
  Write("d/a.csv", "x;y\r\n1;1\r\n2;2\r\n\r\n");
  Write("d/b.csv", "3;3");
  Write("d/c.csv", "x;y\n4;4\n");
  const auto drawn = Drawn({"d/a.csv", "d/b.csv", "d/c.csv"}, {.delimiter = ';'});
  ASSERT_EQ(drawn.size(), 4);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(Label(drawn[i]), i + 1);
}

TEST_F(CsvSourceTest, EveryEpochReadsThemAgain) {
  Write("d/a.csv", "1,1\n2,2\n");
  Write("d/b.csv", "3,3\n");
  const auto drawn = DrawnExamples(Dataset::FromCsv({"d/a.csv", "d/b.csv"}, {}, files_).Repeat(), 7).value();
  std::vector<int64_t> labels;
  for (const Example& example : drawn) labels.push_back(Label(example));
  EXPECT_THAT(labels, ElementsAre(1, 2, 3, 1, 2, 3, 1));
}

TEST_F(CsvSourceTest, APositionIsTheNumberOfRows) {
  std::string content = "x,label\n";
  for (int i = 0; i < 6; ++i) absl::StrAppend(&content, i, ",", i, "\n");
  Write("d/a.csv", content);
  Write("d/b.csv", "6,6\n7,7\n");
  const Dataset data = Dataset::FromCsv({"d/a.csv", "d/b.csv"}, {}, files_);
  EXPECT_FALSE(data.size().has_value());
  for (int64_t before = 0; before <= 8; ++before) {
    const auto first = data.Open().value();
    Example example;
    for (int64_t i = 0; i < before; ++i) ASSERT_TRUE(first->Next(example).value_or(false));
    const auto second = data.Open().value();
    ASSERT_TRUE(second->RestorePosition(first->SavePosition()).ok()) << before;
    for (int64_t i = before; i < 8; ++i) {
      ASSERT_TRUE(second->Next(example).value_or(false)) << before;
      EXPECT_EQ(Label(example), i);
    }
    EXPECT_FALSE(second->Next(example).value_or(true));
  }
}

// Fails if a file is read as a whole: memory mustn't grow with the file.
class PiecewiseFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    return absl::InternalError(absl::StrCat(path, " is read as a whole"));
  }
  absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) override {
    largest = std::max(largest, into.size());
    return ForwardingFileSystem::ReadAt(path, offset, into);
  }
  size_t largest = 0;
};

TEST_F(CsvSourceTest, FilesAreReadPieceByPiece) {
  std::string content;
  for (int i = 0; i < 200000; ++i) absl::StrAppend(&content, i % 100, ",", i % 7, "\n");
  Write("d/large.csv", content);
  PiecewiseFiles files(files_);
  const auto drawn = DrawnExamples(Dataset::FromCsv({"d/large.csv"}, {}, files).Skip(199990)).value();
  ASSERT_EQ(drawn.size(), 10);
  EXPECT_EQ(Label(drawn.back()), 199999 % 7);
  EXPECT_GT(files.largest, 0);
  EXPECT_LT(files.largest, content.size() / 2);
}

TEST_F(CsvSourceTest, IsDescribedByItsFilesWithoutTheirFolders) {
  EXPECT_THAT(Dataset::FromCsv({"d/a.csv", "e/b.csv"}, {}, files_).Describe(), HasSubstr("csv(a.csv, b.csv)"));
  EXPECT_THAT(Dataset::FromCsv({"d/1.csv", "d/2.csv", "d/3.csv", "d/4.csv"}, {}, files_).Describe(),
              HasSubstr("csv(1.csv ... 4.csv: 4 files)"));
}

TEST_F(CsvSourceTest, AMissingFileIsToldBeforeTheFirstRow) {
  Write("d/a.csv", "1,2\n");
  const absl::Status error = Error({"d/a.csv", "d/none.csv"});
  EXPECT_TRUE(absl::IsNotFound(error)) << error;
  EXPECT_THAT(std::string(error.message()), HasSubstr("d/none.csv"));
  const auto stream = Dataset::FromCsv({"d/a.csv", "d/none.csv"}, {}, files_).Open();
  Example example;
  EXPECT_FALSE(stream.ok() && (*stream)->Next(example).ok());
}

TEST_F(CsvSourceTest, WhatIsWrongWithTheContentIsNamedByFileLineAndColumn) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("d/file.csv: the file is empty"));
  EXPECT_THAT(ErrorOf("a,b\n"), HasSubstr("d/file.csv: there are no rows below the header"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n3\n"), HasSubstr("d/file.csv, line 3: 1 columns where the lines above have 2"));
  EXPECT_THAT(ErrorOf("1,2\n\n3,4\n"), HasSubstr("d/file.csv, line 2: the line is blank"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\nx,4\n"), HasSubstr("d/file.csv, line 3, column 1 (a): \"x\" is not a number"));
  EXPECT_THAT(ErrorOf("1,2\n,4\n"), HasSubstr("d/file.csv, line 2, column 1: the value is missing"));
  EXPECT_THAT(ErrorOf("nan,4\n"), HasSubstr("line 1, column 1: \"nan\" is not a finite number"));
  EXPECT_THAT(ErrorOf("1e39,4\n"), HasSubstr("line 1, column 1: 1e+39 is more than a float32 can hold"));
}

TEST_F(CsvSourceTest, ALabelThatIsNotWholeIsNamed) {
  EXPECT_THAT(ErrorOf("a,kind\n1,2\n3,2.5\n"),
              HasSubstr("d/file.csv, line 3, column 2 (kind): the label 2.5 isn't a whole number"));
  EXPECT_THAT(ErrorOf("1,9007199254740994\n"),
              HasSubstr("the label 9007199254740994 isn't a whole number within 2^53"));
  EXPECT_THAT(ErrorOf("1,cat\n2,dog\n", {.header = CsvOptions::Header::kNone}), HasSubstr("\"cat\" is not a number"));
  EXPECT_THAT(ErrorOf("1,1e39\n", {.label_dtype = DType::kFloat32}), HasSubstr("more than a float32 can hold"));
  Write("d/a.csv", "1,-3.0\n1,1e3\n");
  const auto drawn = Drawn({"d/a.csv"});
  ASSERT_EQ(drawn.size(), 2);
  EXPECT_EQ(Label(drawn[0]), -3);
  EXPECT_EQ(Label(drawn[1]), 1000);
}

TEST_F(CsvSourceTest, AColumnThatIsNotThereIsNamedWithTheNearest) {
  const std::string content = "width,height,species\n1,2,0\n";
  EXPECT_THAT(
      ErrorOf(content, {.label = "speces"}),
      HasSubstr("d/file.csv: there is no column \"speces\" (nearest: species); there are width, height, species"));
  EXPECT_THAT(ErrorOf(content, {.groups = {{"x", {"hight"}}}}), HasSubstr("\"hight\" (nearest: height)"));
  EXPECT_THAT(ErrorOf(content, {.groups = {{"x", {"3"}}}}),
              HasSubstr("there is no column 3 among 3; accepted: 0 to 2"));
  EXPECT_THAT(ErrorOf(content, {.label = "-4"}), HasSubstr("there is no column -4 among 3"));
  EXPECT_THAT(ErrorOf("1,2\n", {.label = "species"}),
              HasSubstr("there is no column \"species\", as the columns have no names"));
  EXPECT_THAT(ErrorOf("a,a\n1,2\n", {.groups = {{"x", {"a"}}}, .label = ""}),
              HasSubstr("more than one column is called \"a\""));
  std::string many = "c0";
  for (int i = 1; i < 100; ++i) absl::StrAppend(&many, ",c", i);
  std::string row = "0";
  for (int i = 1; i < 100; ++i) row += ",0";
  const std::string error = ErrorOf(many + "\n" + row + "\n", {.label = "species"});
  EXPECT_THAT(error, HasSubstr("c11, ... (100 columns)"));
  EXPECT_THAT(error, Not(HasSubstr("c12")));
  EXPECT_TRUE(IsWrongConfiguration(Error({"d/file.csv"}, {.label = "species"})));
}

TEST_F(CsvSourceTest, AColumnIsNotFeatureAndLabelAtOnce) {
  EXPECT_THAT(ErrorOf("a,b\n1,2\n", {.groups = {{"x", {"a", "b"}}}}),
              HasSubstr("column \"b\" is the label and also part of the feature \"x\""));
  EXPECT_THAT(ErrorOf("1\n2\n"), HasSubstr("the only column is the label, so that none is left for the feature"));
}

TEST_F(CsvSourceTest, FilesOfOneDataSetHaveTheSameColumns) {
  Write("d/a.csv", "x,y\n1,2\n");
  Write("d/more.csv", "1,2,3\n");
  Write("d/other.csv", "x,z\n1,2\n");
  EXPECT_THAT(std::string(Error({"d/a.csv", "d/more.csv"}).message()),
              HasSubstr("d/more.csv: 3 columns where d/a.csv has 2"));
  EXPECT_THAT(std::string(Error({"d/a.csv", "d/other.csv"}).message()),
              HasSubstr("d/other.csv: column 2 is called \"z\" where d/a.csv has \"y\""));
}

TEST_F(CsvSourceTest, WhatNoFileCouldMakeRightIsAWrongConfiguration) {
  Write("d/a.csv", "1,2\n");
  const auto message = [&](std::vector<std::string> paths, CsvColumns columns) {
    const absl::Status error = Error(std::move(paths), std::move(columns));
    EXPECT_TRUE(IsWrongConfiguration(error)) << error;
    return std::string(error.message());
  };
  EXPECT_THAT(message({}, {}), HasSubstr("no files are named"));
  EXPECT_THAT(message({"d/a.csv"}, {.groups = {}}), HasSubstr("there are no groups of columns"));
  EXPECT_THAT(message({"d/a.csv"}, {.groups = {{"", {"0"}}}}), HasSubstr("has no name for its feature"));
  EXPECT_THAT(message({"d/a.csv"}, {.groups = {{"x", {"0"}}, {"x", {"0"}}}}), HasSubstr("two groups of columns make"));
  EXPECT_THAT(message({"d/a.csv"}, {.label_dtype = DType::kInt32}), HasSubstr("type int32; accepted: int64, float32"));
  EXPECT_THAT(message({"d/a.csv"}, {.delimiter = '\n'}), HasSubstr("the delimiter is a quote or the end of a line"));
}

}  // namespace
}  // namespace muster::csv_source_test
