#include "muster/launch/hosts/ray_setting.h"

#include <gmock/gmock.h>

namespace muster::ray_setting_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

std::string WhyNot(const std::string& name, const std::optional<std::string>& value) {
  RaySetting ray;
  return std::string(TakeRaySetting(ray, name, value).message());
}

TEST(RaySettingTest, TakesWhatAJobIsAskedFor) {
  RaySetting ray;
  EXPECT_TRUE(TakeRaySetting(ray, "nodes", "3").ok());
  EXPECT_TRUE(TakeRaySetting(ray, "address", "https://ray.example:443").ok());
  EXPECT_TRUE(TakeRaySetting(ray, "python", "/opt/ray/bin/python3").ok());
  EXPECT_TRUE(TakeRaySetting(ray, "resources.CPU", "2.5").ok());
  EXPECT_TRUE(TakeRaySetting(ray, "resources.node:10.0.0.1", "0.1").ok());
  EXPECT_TRUE(TakeRaySetting(ray, "autoscaler", "").ok());
  EXPECT_TRUE(ray.autoscaler);
  EXPECT_EQ(ray.nodes, 3);
  EXPECT_EQ(ray.address, "https://ray.example:443");
  EXPECT_THAT(ray.resources, ElementsAre(Pair("CPU", 2.5), Pair("node:10.0.0.1", 0.1)));
  for (const char* name : {"nodes", "address", "python", "autoscaler", "resources.CPU", "resources.node:10.0.0.1"})
    EXPECT_TRUE(TakeRaySetting(ray, name, std::nullopt).ok());
  EXPECT_EQ(ray, RaySetting());
}

TEST(RaySettingTest, WhatIsNotAcceptedIsNamed) {
  EXPECT_THAT(WhyNot("nodes", "0"), HasSubstr("nodes is '0'; accepted: a whole number from 1"));
  EXPECT_THAT(WhyNot("node", "1"), HasSubstr("'node' is unknown (nearest: nodes); accepted: nodes, address"));
  EXPECT_THAT(WhyNot("address", "two words"), HasSubstr("where Ray's dashboard answers"));
  EXPECT_THAT(WhyNot("autoscaler", "maybe"), HasSubstr("true or false"));
  EXPECT_THAT(WhyNot("python", ""), HasSubstr("accepted: a program"));
  EXPECT_THAT(WhyNot("resources.CPU", "-1"), HasSubstr("a number from 0"));
  EXPECT_THAT(WhyNot("resources.", "1"), HasSubstr("one of Ray's"));
}

}  // namespace
}  // namespace muster::ray_setting_test
