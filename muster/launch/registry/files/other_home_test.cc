#include "muster/launch/registry/files/other_home.h"

#include <gtest/gtest.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::other_home_test {
namespace {

TEST(OtherHomeTest, IsReadAsItWasWritten) {
  const ScratchFolder scratch;
  EXPECT_EQ(ReadOtherHome(scratch / "other_home"), std::nullopt);
  const OtherHome other = {.path = "/site/muster", .elsewhere = true};
  ASSERT_TRUE(WriteOtherHome(scratch / "other_home", other).ok());
  EXPECT_EQ(ReadOtherHome(scratch / "other_home"), other);
}

TEST(OtherHomeTest, OnlyAPlainAbsolutePathIsAHome) {
  const ScratchFolder scratch;
  for (const char* path : {"", "/", "a", "/a/", "/a/../b", "/a//b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WriteOtherHome(scratch / "other_home", {.path = path}))) << path;
    scratch.Write("other_home", std::string("{\"home\":\"") + path + "\",\"elsewhere\":true}");
    EXPECT_EQ(ReadOtherHome(scratch / "other_home"), std::nullopt) << path;
  }
  scratch.Write("other_home", "{\"home\":7}");
  EXPECT_EQ(ReadOtherHome(scratch / "other_home"), std::nullopt);
}

TEST(OtherHomeTest, PathsBelowItAreBelowTheHomeHere) {
  const OtherHome other = {.path = "/far"};
  EXPECT_EQ(PathOnThisSide(other, "/near", "/far/experiments/1/output"), "/near/experiments/1/output");
  EXPECT_EQ(PathOnThisSide(other, "/near", "/data/1"), "/data/1");
  EXPECT_EQ(PathOnThisSide(other, "/near", "/farther/1"), "/farther/1");
  EXPECT_EQ(PathOnThisSide(other, "/near", "/far/../etc"), "/far/../etc") << "it leaves the home";
  EXPECT_EQ(PathOnThisSide(other, "/near", ""), "");
}

}  // namespace
}  // namespace muster::other_home_test
