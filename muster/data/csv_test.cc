#include "muster/data/csv.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::csv_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;
using Header = CsvOptions::Header;

std::string ErrorOf(std::string_view content, const CsvOptions& options = {}) {
  const auto table = ParseCsv(content, "file.csv", options);
  EXPECT_FALSE(table.ok()) << content;
  return table.ok() ? "" : std::string(table.status().message());
}

TEST(Csv, ReadsNumbersRowByRow) {
  const auto table = ParseCsv("1,2.5,-3\n4e2, +5 ,\t6\n", "file.csv").value();
  EXPECT_EQ(table.columns, 3);
  EXPECT_EQ(table.rows(), 2);
  EXPECT_THAT(table.values, ElementsAre(1, 2.5, -3, 400, 5, 6));
  EXPECT_EQ(table.at(1, 0), 400);
  EXPECT_EQ(table.line(1), 2);
}

TEST(Csv, TakesWindowsLinesByteOrderMarkAndBlankEnd) {
  const auto table = ParseCsv(
                         "\xEF\xBB\xBF"
                         "1,2\r\n3,4\r\n\r\n\n",
                         "file.csv")
                         .value();
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
}

TEST(Csv, LastLineNeedsNoEnd) {
  const auto table = ParseCsv("1;2\n3;4", "file.csv", {.delimiter = ';'}).value();
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
}

TEST(Csv, HeaderIsDetectedOnlyWhenAsked) {
  const std::string content = "height,\"label\"\n1,2\n";
  EXPECT_THAT(ErrorOf(content), HasSubstr("file.csv, line 1, column 1: \"height\" is not a number"));
  const auto detected = ParseCsv(content, "file.csv", {.header = Header::kDetect}).value();
  EXPECT_THAT(detected.names, ElementsAre("height", "label"));
  EXPECT_THAT(detected.values, ElementsAre(1, 2));
  EXPECT_EQ(detected.line(0), 2);
  // A first line of numbers with one bad field is a mistake in the data, not a header.
  EXPECT_THAT(ErrorOf("1,x\n1,2\n", {.header = Header::kDetect}), HasSubstr("line 1, column 2"));
  const auto present = ParseCsv("7,8\n1,2\n", "file.csv", {.header = Header::kPresent}).value();
  EXPECT_THAT(present.values, ElementsAre(1, 2));
}

TEST(Csv, AQuotedFieldMayHoldTheDelimiterAndTheQuote) {
  const auto table =
      ParseCsv("\"a, b\", \"the \"\"c\"\"\" \n\"1\" , 2\n", "file.csv", {.header = Header::kDetect}).value();
  EXPECT_THAT(table.names, ElementsAre("a, b", "the \"c\""));
  EXPECT_THAT(table.values, ElementsAre(1, 2));
  EXPECT_THAT(ErrorOf("1,\"2\n3\",4\n"), HasSubstr("file.csv, line 1, column 2: the quote isn't closed"));
  EXPECT_THAT(ErrorOf("1,\"2\"3\n"), HasSubstr("line 1, column 2: the quote isn't closed on this line, or something"));
  EXPECT_THAT(ErrorOf("1,2\"\n"), HasSubstr("line 1, column 2: \"2\"\" is not a number"));
  // A last field whose closing quote is doubled isn't closed.
  EXPECT_THAT(ErrorOf("1,\"2\"\"\n"), HasSubstr("column 2: the quote isn't closed"));
}

TEST(Csv, NamesFileLineAndColumnOfWhatIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("file.csv: the file is empty"));
  EXPECT_THAT(ErrorOf("\n \r\n"), HasSubstr("file.csv: the file is empty"));
  EXPECT_THAT(ErrorOf("a,b\n", {.header = Header::kPresent}), HasSubstr("no rows below the header"));
  EXPECT_THAT(ErrorOf("1,2\n3\n"), HasSubstr("file.csv, line 2: 1 columns where the lines above have 2"));
  EXPECT_THAT(ErrorOf("a,b\n1,2,3\n", {.header = Header::kPresent}), HasSubstr("line 2: 3 columns"));
  EXPECT_THAT(ErrorOf("1,2\n3,\n"), HasSubstr("file.csv, line 2, column 2: the value is missing"));
  EXPECT_THAT(ErrorOf("1,2\n\n3,4\n"), HasSubstr("file.csv, line 2: the line is blank"));
  EXPECT_THAT(ErrorOf("1,2\n3,4x\n"), HasSubstr("line 2, column 2: \"4x\" is not a number"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n3,4x\n", {.header = Header::kPresent}), HasSubstr("line 3, column 2 (b): \"4x\""));
  EXPECT_THAT(ErrorOf("\n1,2\n", {.header = Header::kPresent}), HasSubstr("file.csv, line 1: the line is blank"));
  EXPECT_THAT(ErrorOf("1,+-2\n"), HasSubstr("\"+-2\" is not a number"));
  EXPECT_THAT(ErrorOf("nan,1\n"), HasSubstr("line 1, column 1: \"nan\" is not a finite number"));
  EXPECT_THAT(ErrorOf("1,1e999\n"), HasSubstr("column 2: \"1e999\" is not a finite number"));
  EXPECT_THAT(ErrorOf(std::string(1000, 'x') + "\n"), testing::SizeIs(testing::Lt(200)));
  EXPECT_THAT(ErrorOf(std::string_view("1,\0\1\n", 5)), HasSubstr("\"??\" is not a number"));
}

TEST(Csv, MissingFileIsNotFoundAndNamed) {
  const auto table = ReadCsv(PosixFileSystem(), "/nowhere/file.csv");
  EXPECT_EQ(table.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(table.status().message()), HasSubstr("/nowhere/file.csv"));
}

}  // namespace
}  // namespace muster::csv_test
