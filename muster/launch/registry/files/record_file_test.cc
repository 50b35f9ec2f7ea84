#include "muster/launch/registry/files/record_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/full_disk.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::record_file_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

class RecordFileTest : public ::testing::Test {
 protected:
  uint64_t Append(uint64_t end, const std::string& record) {
    return AppendRecord(path_, end, record, Durability::kDisk).value();
  }
  std::vector<std::string> All() { return ReadRecordsFrom(path_, 0).value().records; }
  std::string Bytes() { return PosixFileSystem().ReadFile(path_).value(); }
  void SetBytes(const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path_, AsBytes(bytes.data(), bytes.size())).ok());
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_ / "records";
};

TEST_F(RecordFileTest, WhatIsAppendedIsReadFromWhereAReaderStopped) {
  EXPECT_THAT(All(), IsEmpty()) << "there is no file";
  const uint64_t first = Append(0, "one");
  const uint64_t second = Append(first, "");
  const uint64_t third = Append(second, "three");
  EXPECT_EQ(third, std::filesystem::file_size(path_));
  EXPECT_THAT(All(), ElementsAre("one", "", "three"));
  const auto later = ReadRecordsFrom(path_, second).value();
  EXPECT_THAT(later.records, ElementsAre("three"));
  EXPECT_EQ(later.end, third);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(RecordFileTest, AReaderStopsBeforeALineThatIsCutAnywhere) {
  const uint64_t first = Append(0, "one");
  Append(first, "the second");
  const std::string whole = Bytes();
  for (size_t cut = first; cut < whole.size(); ++cut) {
    SetBytes(whole.substr(0, cut));
    const auto read = ReadRecordsFrom(path_, 0).value();
    EXPECT_THAT(read.records, ElementsAre("one")) << cut;
    EXPECT_EQ(read.end, first);
  }
}

TEST_F(RecordFileTest, AReaderStopsBeforeALineWithAWrongByteAnywhere) {
  const uint64_t first = Append(0, "one");
  Append(first, "the second");
  const std::string whole = Bytes();
  for (size_t at = first; at < whole.size(); ++at) {
    for (const char other : {'\0', 'x', static_cast<char>(whole[at] ^ 1)}) {
      if (other == whole[at]) continue;
      std::string spoilt = whole;
      spoilt[at] = other;
      SetBytes(spoilt);
      EXPECT_THAT(All(), ElementsAre("one")) << at;
    }
  }
}

// A network file system may show the new size before the bytes.
TEST_F(RecordFileTest, ZeroBytesAreNotThereYet) {
  const uint64_t first = Append(0, "one");
  Append(first, "two");
  const std::string whole = Bytes();
  SetBytes(whole.substr(0, first + 5) + std::string(whole.size() - first - 5, '\0'));
  EXPECT_THAT(All(), ElementsAre("one"));
}

TEST_F(RecordFileTest, TheNextWriterCutsOffATornLine) {
  const uint64_t first = Append(0, "one");
  Append(first, "torn");
  SetBytes(Bytes().substr(0, first + 9));
  Append(first, "two");
  EXPECT_THAT(All(), ElementsAre("one", "two"));
}

TEST_F(RecordFileTest, AWriterThatKnowsOfMoreThanIsThereIsRefused) {
  const uint64_t first = Append(0, "one");
  SetBytes("");
  EXPECT_EQ(AppendRecord(path_, first, "two", Durability::kProcess).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(RecordFileTest, WhatDoesNotFitLeavesItAsItWas) {
  const uint64_t first = Append(0, "one");
  std::optional<FullDisk> disk(std::in_place, first + 100);
  const auto full = AppendRecord(path_, first, std::string(1000, 'x'), Durability::kProcess);
  const absl::Status replaced = ReplaceFile(path_, std::string(1000, 'x'), Durability::kDisk);
  disk.reset();
  EXPECT_EQ(full.status().code(), absl::StatusCode::kResourceExhausted) << full.status();
  EXPECT_EQ(replaced.code(), absl::StatusCode::kResourceExhausted) << replaced;
  EXPECT_EQ(std::filesystem::file_size(path_), first);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path()), {}), 1) << "nothing is left beside it";
}

// A reader has all of the old file or all of the new one, whenever it opens it.
TEST_F(RecordFileTest, AReplacedFileIsAnotherFileAndTheOldOneStaysWhole) {
  const std::string first(100000, 'a'), second(200000, 'b');
  ASSERT_TRUE(ReplaceFile(path_, first, Durability::kProcess).ok());
  std::ifstream reader(path_);
  ASSERT_EQ(reader.peek(), 'a');
  ASSERT_TRUE(ReplaceFile(path_, second, Durability::kProcess).ok());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), first);
  EXPECT_EQ(Bytes(), second);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path()), {}), 1) << "nothing is left beside it";
}

TEST_F(RecordFileTest, ASignatureChangesWithTheFile) {
  EXPECT_EQ(SignatureOf(path_), "");
  ASSERT_TRUE(ReplaceFile(path_, "a", Durability::kProcess).ok());
  const std::string first = SignatureOf(path_);
  ASSERT_TRUE(ReplaceFile(path_, "b", Durability::kDisk).ok());
  EXPECT_NE(SignatureOf(path_), first);
  EXPECT_EQ(SignatureOf(path_), SignatureOf(path_));
}

TEST_F(RecordFileTest, TheAgeOfAFileIsByItsFileSystemsClock) {
  EXPECT_EQ(AgeOfFile(path_), std::nullopt);
  ASSERT_TRUE(ReplaceFile(path_, "a", Durability::kProcess).ok());
  std::filesystem::last_write_time(path_, std::filesystem::last_write_time(path_) - std::chrono::hours(1));
  const auto age = AgeOfFile(path_);
  ASSERT_TRUE(age.has_value());
  EXPECT_GE(*age, absl::Hours(1));
  EXPECT_LT(*age, absl::Hours(2));
}

}  // namespace
}  // namespace muster::record_file_test
