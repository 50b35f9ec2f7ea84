#include "muster/data/file_lines.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/base/files/memory_file_system.h"

namespace muster::file_lines_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

std::vector<std::string> Lines(const std::string& content, size_t block) {
  MemoryFileSystem files;
  EXPECT_TRUE(files.WriteFile("d/f", content).ok());
  FileLines lines(files, "d/f", block);
  std::vector<std::string> found;
  for (std::string_view line;;) {
    if (!lines.Next(line).value()) return found;
    found.emplace_back(line);
  }
}

TEST(FileLinesTest, LinesAreTheSameHoweverTheBlocksCutThem) {
  for (size_t block = 1; block < 20; ++block) {
    EXPECT_THAT(Lines("one\n\nthree 3\nfour\n", block), ElementsAre("one", "", "three 3", "four")) << block;
    EXPECT_THAT(Lines("one\r\nlast", block), ElementsAre("one\r", "last")) << block;
    EXPECT_THAT(Lines("\n", block), ElementsAre("")) << block;
    EXPECT_THAT(Lines("", block), IsEmpty()) << block;
  }
}

TEST(FileLinesTest, AFileThatIsMissingOrGetsShorterIsNamed) {
  MemoryFileSystem files;
  std::string_view line;
  FileLines missing(files, "d/none", 4);
  EXPECT_EQ(missing.Next(line).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files.WriteFile("d/f", "1\n2\n3\n4\n").ok());
  FileLines lines(files, "d/f", 4);
  ASSERT_TRUE(lines.Next(line).ok());
  EXPECT_EQ(line, "1");
  ASSERT_TRUE(files.Truncate("d/f", 5).ok());
  ASSERT_TRUE(lines.Next(line).ok());
  for (int i = 0; i < 2; ++i) {  // again and again
    const auto got = lines.Next(line);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(got.status().message()), HasSubstr("d/f"));
  }
}

TEST(FileLinesTest, ALineWithoutEndIsNotReadForEver) {
  MemoryFileSystem files;
  const std::string binary(FileLines::kLongestLine + (size_t{1} << 20), 'x');
  ASSERT_TRUE(files.WriteFile("d/f", "first\n" + binary).ok());
  FileLines lines(files, "d/f");
  std::string_view line;
  ASSERT_TRUE(lines.Next(line).ok());
  const auto got = lines.Next(line);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("d/f, line 2: the line is longer than 16 MiB"));
}

}  // namespace
}  // namespace muster::file_lines_test
