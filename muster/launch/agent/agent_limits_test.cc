#include "muster/launch/agent/agent_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::agent_limits_test {
namespace {

using ::testing::HasSubstr;

TEST(AgentLimitsTest, TheDefaultsAreInOrder) { EXPECT_TRUE(CheckAgentLimits({}).ok()) << CheckAgentLimits({}); }

TEST(AgentLimitsTest, NoLimitMayPassItsNeighbour) {
  const auto refusal = [](const AgentLimits& limits) { return std::string(CheckAgentLimits(limits).message()); };
  EXPECT_THAT(refusal({.silence = absl::Seconds(2)}), HasSubstr("the silence after which a frame goes (2s)"));
  EXPECT_THAT(refusal({.suspect = absl::Seconds(1)}), HasSubstr("less than the time until a host is suspect (1s)"));
  EXPECT_THAT(refusal({.suspect = absl::Seconds(40)}), HasSubstr("less than the grace (30s)"));
  EXPECT_THAT(refusal({.ending = absl::Seconds(4)}), HasSubstr("until a host is lost (5s)"));
  EXPECT_THAT(refusal({.silence = absl::ZeroDuration()}), HasSubstr("must be above 0"));
}

}  // namespace
}  // namespace muster::agent_limits_test
