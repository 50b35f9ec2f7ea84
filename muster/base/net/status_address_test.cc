#include "muster/base/net/status_address.h"

#include <gtest/gtest.h>

namespace muster::status_address_test {
namespace {

TEST(StatusAddressTest, APortIsOneOfTheLoopbackUnlessAHostIsNamed) {
  EXPECT_EQ(*ParseStatusAddress("9100"), (StatusAddress{"127.0.0.1", 9100}));
  EXPECT_EQ(*ParseStatusAddress("0"), (StatusAddress{"127.0.0.1", 0}));
  EXPECT_EQ(*ParseStatusAddress("0.0.0.0:65535"), (StatusAddress{"0.0.0.0", 65535}));
}

TEST(StatusAddressTest, WhatIsNoPortIsRefused) {
  for (const char* text : {"", "x", "-1", "+1", " 1", "65536", "99999999999", ":1", "host:", "host", "1.5"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStatusAddress(text).status())) << text;
}

}  // namespace
}  // namespace muster::status_address_test
