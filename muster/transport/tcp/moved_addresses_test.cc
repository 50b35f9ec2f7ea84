#include "muster/transport/tcp/moved_addresses.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr char kFile[] =
    "ps:0 10.0.0.3:20003 10.0.0.1:20000 10.0.0.2:20001\n"
    "worker:0 10.0.0.2:20001 10.0.0.1:20007\n"
    "evaluator:0\n";

TEST(MovedAddressesTest, AFormerAddressLeadsToThePresentOne) {
  EXPECT_EQ(PresentAddressIn(kFile, "10.0.0.1:20000"), "10.0.0.3:20003");
  EXPECT_EQ(PresentAddressIn(kFile, "10.0.0.3:20003"), "10.0.0.3:20003");
  EXPECT_EQ(PresentAddressIn(kFile, "10.0.0.1:20007"), "10.0.0.2:20001");
}

TEST(MovedAddressesTest, AnAddressThatAnotherTaskHasNowIsThatTask) {
  EXPECT_EQ(PresentAddressIn(kFile, "10.0.0.2:20001"), "10.0.0.2:20001");
}

TEST(MovedAddressesTest, OthersStayAsTheyAre) {
  EXPECT_EQ(PresentAddressIn(kFile, "10.0.0.9:20000"), "10.0.0.9:20000");
  EXPECT_EQ(PresentAddressIn("", "h:1"), "h:1");
  EXPECT_EQ(PresentAddress("", "h:1", "h:1"), "h:1");
  EXPECT_EQ(PresentAddress("/no/such/file", "h:1", "h:2"), "h:2") << "where it was found last";
}

}  // namespace
}  // namespace muster
