#include "muster/base/net/port_range.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "muster/base/testing/scratch_folder.h"

namespace muster::port_range_test {
namespace {

using ::testing::HasSubstr;

PortRange Range(int first, int last) {
  return {.first = static_cast<uint16_t>(first), .count = static_cast<uint16_t>(last - first + 1)};
}

TEST(PortRange, IsReadAndWrittenAsFirstAndLast) {
  EXPECT_EQ(ParsePortRange("40000-40100").value(), Range(40000, 40100));
  EXPECT_EQ(ParsePortRange("40000-40100")->ToString(), "40000-40100");
  EXPECT_EQ(ParsePortRange("7-7")->count, 1);
  EXPECT_EQ(ParsePortRange("1-65535")->ToString(), "1-65535");
}

TEST(PortRange, WhatIsNoneIsRefusedWithWhatIsAccepted) {
  for (const std::string text : {"", "40000", "40000-", "-40000", "40100-40000", "0-5", "65535-65536", "a-b", "1-2-3"})
    EXPECT_THAT(std::string(ParsePortRange(text).status().message()),
                HasSubstr("'" + text + "' is no range of ports; accepted: FIRST-LAST"));
}

TEST(PortsOutside, AreTheUsualOnesBelowLinuxsOwnChoice) {
  EXPECT_EQ(PortsOutside(Range(32768, 60999)), Range(20000, 32767));
  EXPECT_EQ(PortsOutside(Range(1024, 4999)), Range(20000, 32767));
  EXPECT_EQ(PortsOutside({}), Range(20000, 32767));
}

TEST(PortsOutside, AreThoseOfTheUsualThatRemain) { EXPECT_EQ(PortsOutside(Range(30000, 65535)), Range(20000, 29999)); }

TEST(PortsOutside, AreAboveWhereThatIsWider) {
  EXPECT_EQ(PortsOutside(Range(15000, 60999)), Range(61000, 65535));
  EXPECT_EQ(PortsOutside(Range(10000, 30000)), Range(30001, 65535));
  EXPECT_EQ(PortsOutside(Range(10000, 20000)), Range(20001, 65535));
}

TEST(PortsOutside, AreBelowWhereNothingIsAbove) { EXPECT_EQ(PortsOutside(Range(9000, 65535)), Range(1024, 8999)); }

TEST(PortsOutside, AreTheLargestPartWhereAllAreSmall) {
  EXPECT_EQ(PortsOutside(Range(1200, 65500)), Range(1024, 1199));
  EXPECT_EQ(PortsOutside(Range(1024, 65535)), Range(20000, 32767)) << "none is outside";
}

TEST(UsualPorts, FollowWhatTheMachineSays) {
  const ScratchFolder folder;
  std::ofstream(folder / "range") << "9000\t65535\n";
  EXPECT_EQ(UsualPorts(folder / "range"), Range(1024, 8999));
  std::ofstream(folder / "wrong") << "nothing\n";
  EXPECT_EQ(UsualPorts(folder / "wrong"), Range(20000, 32767));
  EXPECT_EQ(UsualPorts(folder / "missing"), Range(20000, 32767));
}

}  // namespace
}  // namespace muster::port_range_test
