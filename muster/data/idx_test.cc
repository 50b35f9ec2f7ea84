#include "muster/data/idx.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/data/testing/gzipped.h"

namespace muster::idx_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::string Header(const std::vector<uint32_t>& shape, char type = 8) {
  std::string header = {0, 0, type, static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) header += static_cast<char>(size >> shift);
  }
  return header;
}

void ExpectError(const std::string& content, absl::StatusCode code, const std::string& words) {
  const auto array = ParseIdx(content, "file.idx");
  ASSERT_FALSE(array.ok());
  EXPECT_EQ(array.status().code(), code) << array.status();
  EXPECT_THAT(std::string(array.status().message()), HasSubstr("file.idx: "));
  EXPECT_THAT(std::string(array.status().message()), HasSubstr(words));
}

TEST(Idx, ReadsPlainAndGzippedByContent) {
  const std::string plain = Header({2, 1, 3}) + "\1\2\3\4\5\xff";
  for (const std::string& content : {plain, Gzip(plain)}) {
    const auto array = ParseIdx(content, "file.idx").value();
    EXPECT_THAT(array.shape, ElementsAre(2, 1, 3));
    EXPECT_THAT(array.elements, ElementsAre(1, 2, 3, 4, 5, 255));
  }
}

TEST(Idx, ReadsHighlyCompressedElements) {
  const auto array = ParseIdx(Gzip(Header({1000, 1000}) + std::string(1000000, '\7')), "file.idx").value();
  EXPECT_EQ(array.elements, std::vector<uint8_t>(1000000, 7));
}

TEST(Idx, RefusesWhatIsNotIdx) {
  using enum absl::StatusCode;
  ExpectError("", kInvalidArgument, "the file is empty");
  ExpectError("hello world", kInvalidArgument, "not an IDX file: it starts with 104, 101");
  ExpectError(Header({1}, 0x0D) + "1234", kInvalidArgument, "element type 13 is not supported");
  ExpectError(Header({}), kInvalidArgument, "0 IDX dimensions");
  ExpectError(Header({1, 1, 1, 1, 1}) + "1", kInvalidArgument, "5 IDX dimensions");
  ExpectError(Header({3, 0}), kInvalidArgument, "shape [3, 0] holds no elements");
  ExpectError(Gzip("hello world"), kInvalidArgument, "not an IDX file");
}

TEST(Idx, RefusesWhatIsCutShortOrTooLong) {
  using enum absl::StatusCode;
  const std::string whole = Header({2, 3}) + "123456";
  for (size_t size = 1; size < whole.size(); ++size) ExpectError(whole.substr(0, size), kDataLoss, "cut short");
  ExpectError(whole + "7", kDataLoss, "bytes follow the 6 elements of shape [2, 3]");
  ExpectError(Gzip(whole + "7"), kDataLoss, "bytes follow the 6 elements");
  const std::string packed = Gzip(whole);
  for (size_t size = 2; size < packed.size(); ++size) ExpectError(packed.substr(0, size), kDataLoss, "");
  ExpectError(packed + "x", kDataLoss, "damaged: bytes follow its end");
}

TEST(Idx, RefusesDamagedCompression) {
  std::string packed = Gzip(Header({2, 3}) + "123456");
  packed[packed.size() - 6] ^= 1;  // in the checksum
  ExpectError(packed, absl::StatusCode::kDataLoss, "the gzip data are damaged");
}

TEST(Idx, AllocatesNothingForAnImpossibleHeader) {
  using enum absl::StatusCode;
  // 2^128 elements, and 2^32 - 1 in a file of a few bytes: refused by arithmetic, before memory is allocated.
  const std::string huge = Header({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff});
  ExpectError(huge, kDataLoss, "needs more bytes than follow");
  ExpectError(Header({0xffffffff}), kDataLoss, "needs more bytes than follow");
  ExpectError(Gzip(huge), kDataLoss, "needs more bytes than follow");
}

TEST(Idx, MissingFileIsNotFoundAndNamed) {
  const auto array = ReadIdx(PosixFileSystem(), "/nowhere/file.idx");
  EXPECT_EQ(array.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(array.status().message()), HasSubstr("/nowhere/file.idx"));
}

}  // namespace
}  // namespace muster::idx_test
