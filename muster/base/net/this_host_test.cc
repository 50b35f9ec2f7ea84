#include "muster/base/net/this_host.h"

#include <gtest/gtest.h>

namespace muster::this_host_test {
namespace {

TEST(ThisHost, LoopbackIsHere) {
  EXPECT_TRUE(IsThisHost("127.0.0.1:5000"));
  EXPECT_TRUE(IsThisHost("127.3.2.1:5000"));
  EXPECT_TRUE(IsThisHost("[::1]:5000"));
  EXPECT_TRUE(IsThisHost("[::ffff:127.0.0.1]:5000"));
}

// 192.0.2.0/24 and 2001:db8::/32 are for documents: no interface has them.
TEST(ThisHost, OtherAddressesAndOtherThingsAreNot) {
  EXPECT_FALSE(IsThisHost("192.0.2.1:5000"));
  EXPECT_FALSE(IsThisHost("[2001:db8::1]:5000"));
  EXPECT_FALSE(IsThisHost("loopback:7"));
  EXPECT_FALSE(IsThisHost(""));
}

}  // namespace
}  // namespace muster::this_host_test
