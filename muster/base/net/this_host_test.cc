#include "muster/base/net/this_host.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

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

TEST(ThisHost, ASocketsAddressIsLoopbackOrNot) {
  const auto is_loopback = [](int family, const char* text) {
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    void* host = family == AF_INET ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(address).sin_addr)
                                   : &reinterpret_cast<sockaddr_in6&>(address).sin6_addr;
    EXPECT_EQ(inet_pton(family, text, host), 1);
    return IsLoopback(reinterpret_cast<const sockaddr&>(address));
  };
  EXPECT_TRUE(is_loopback(AF_INET, "127.3.2.1"));
  EXPECT_TRUE(is_loopback(AF_INET6, "::1"));
  EXPECT_TRUE(is_loopback(AF_INET6, "::ffff:127.0.0.1"));
  EXPECT_FALSE(is_loopback(AF_INET, "192.0.2.1"));
  EXPECT_FALSE(is_loopback(AF_INET, "0.0.0.0"));
  EXPECT_FALSE(is_loopback(AF_INET6, "::"));
  EXPECT_FALSE(is_loopback(AF_INET6, "::ffff:192.0.2.1"));
  sockaddr_storage nameless{};
  nameless.ss_family = AF_UNIX;
  EXPECT_FALSE(IsLoopback(reinterpret_cast<const sockaddr&>(nameless)));
}

}  // namespace
}  // namespace muster::this_host_test
