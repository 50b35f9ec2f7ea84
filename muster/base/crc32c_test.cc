#include "muster/base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>

namespace muster::crc32c_test {
namespace {

ByteSpan Bytes(std::string_view text) { return AsBytes(text.data(), text.size()); }

// Vectors from RFC 3720 appendix B.4 and from TensorBoard's masked_crc.rs.
TEST(Crc32cTest, PublishedVectors) {
  const std::string zeros(32, '\0');
  EXPECT_EQ(Crc32c(Bytes(zeros)), 0x8a9136aau);
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(MaskedCrc32c(Bytes("\x1a\x11"
                               "CRC test, one two")),
            0x5794d08au);
}

TEST(Crc32cTest, FastEqualsPortableAtEveryLengthAndSplit) {
  std::string text;
  for (int i = 0; i < 67; ++i) text.push_back(static_cast<char>(i * 37 + 11));
  for (size_t length = 0; length <= text.size(); ++length) {
    const ByteSpan whole = Bytes(std::string_view(text).substr(0, length));
    EXPECT_EQ(Crc32c(whole), Crc32cPortable(whole)) << length;
    EXPECT_EQ(Crc32c(whole.subspan(length / 2), Crc32c(whole.first(length / 2))), Crc32c(whole)) << length;
  }
}

}  // namespace
}  // namespace muster::crc32c_test
