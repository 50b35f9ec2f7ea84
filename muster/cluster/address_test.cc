#include "muster/cluster/address.h"

#include <gmock/gmock.h>

namespace muster::address_test {
namespace {

using ::testing::HasSubstr;

TEST(Address, IsANameOrAnIpv4OrAnIpv6Address) {
  for (const char* text :
       {"127.0.0.1:2222", "localhost:1", "trainer-ps-0.jobs.svc.cluster.local:65535", "compose_ps_1:80", "host.:80",
        "[::1]:2222", "[2001:db8::1]:2222", "[fe80::1%eth0]:2222", "3com:80"}) {
    const auto address = ParseHostPort(text).value();
    EXPECT_EQ(address.ToString(), text);
  }
}

TEST(Address, SpellingsOfOneAddressAreEqual) {
  EXPECT_EQ(ParseHostPort("LocalHost:2222").value(), ParseHostPort("localhost:02222").value());
  EXPECT_EQ(ParseHostPort("[0:0:0:0:0:0:0:1]:5").value(), ParseHostPort("[::1]:5").value());
  EXPECT_NE(ParseHostPort("[::1]:5").value(), ParseHostPort("[::1]:6").value());
  const HostPort parsed = ParseHostPort("[2001:DB8::1]:7").value();
  EXPECT_EQ(parsed.host, "2001:db8::1");
  EXPECT_EQ(parsed.port, 7);
  EXPECT_TRUE(parsed.is_ipv6);
}

TEST(Address, RefusesEverythingElseAndSaysWhatIsAccepted) {
  for (const char* text :
       {"",         ":",           "host",         "host:",      ":80",       "host:0", "host:65536", "host:-1",
        "host:8x",  "host:080808", "::1:2222",     "[::1]",      "[::1]2222", "[::1",   "[::1]:",     "[host]:1",
        "[::1%]:1", "[::1%a/b]:1", "10.0.0.256:1", "10.0.1:1",   "1:2",       "a b:1",  " a:1",       "a:1 ",
        "a..b:1",   "-a:1",        "a-:1",         "grpc://a:1", "a/b:1",     "a,b:1",  ".:1"}) {
    const auto address = ParseHostPort(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr("accepted: host:port")) << text;
  }
  EXPECT_FALSE(ParseHostPort(std::string("[::1\0]:1", 8)).ok());
  EXPECT_FALSE(ParseHostPort(std::string(64, 'a') + ":1").ok());
}

}  // namespace
}  // namespace muster::address_test
