#include "muster/transport/hmac.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace muster::hmac_test {
namespace {

// RFC 4231, test cases 1, 2 and 6.
TEST(HmacTest, GivesThePublishedMacs) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(absl::BytesToHexString(HmacSha256(std::string(131, '\xaa'),
                                              "Test Using Larger Than Block-Size Key - Hash "
                                              "Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacTest, AnEmptyKeyIsAKey) { EXPECT_EQ(HmacSha256("", "").size(), kHmacBytes); }

TEST(HmacTest, ComparesTheWholeText) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abcd"));
}

}  // namespace
}  // namespace muster::hmac_test
