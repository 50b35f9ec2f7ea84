// Results that `bench steps` might have measured: the ratios computed from them, and which goals count as met.
#include "bench/steps/steps_goals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace muster::steps_goals_test {
namespace {

using bench::Against;
using bench::RatioOf;
using bench::StepsLine;
using bench::StepsWay;
using nlohmann::json;

const StepsWay kLocal;
const StepsWay kTwoLocals = {.workers = 2};
const StepsWay kAlone = {.mode = bench::kAlone};
const StepsWay kDirect = {.mode = "async", .apply = "direct"};
const StepsWay kTwoDirect = {.mode = "async", .workers = 2, .apply = "direct"};

TEST(StepsRatioTest, IsTheMedianOfTheRoundsRatiosAndNotTheRatioOfTheMedians) {
  // A host that is slow in the first and the last round. The ratio of the medians would be 60 / 100.
  const std::vector<StepsLine> lines = {{kLocal, {10, 100, 200}}, {kAlone, {9, 80, 60}}};
  EXPECT_DOUBLE_EQ(RatioOf(lines, kAlone, Against::kLocal).value(), 0.8);
}

TEST(StepsRatioTest, EachComparisonHasItsReference) {
  StepsWay traced = kDirect, switch_off;
  traced.traced = true;
  switch_off.amd = false;
  const std::vector<StepsLine> lines = {{kLocal, {100}}, {kTwoLocals, {160}}, {switch_off, {50}},
                                        {kDirect, {90}}, {kTwoDirect, {120}}, {traced, {81}}};
  EXPECT_DOUBLE_EQ(RatioOf(lines, kTwoDirect, Against::kLocal).value(), 1.2);
  EXPECT_DOUBLE_EQ(RatioOf(lines, kTwoDirect, Against::kTwoLocals).value(), 0.75);
  EXPECT_DOUBLE_EQ(RatioOf(lines, traced, Against::kUntraced).value(), 0.9);
  EXPECT_DOUBLE_EQ(RatioOf(lines, kLocal, Against::kSwitchOff).value(), 2);
}

TEST(StepsRatioTest, OfWhatWasNotMeasuredOrFailedIsNone) {
  EXPECT_EQ(RatioOf({{kAlone, {80}}}, kAlone, Against::kLocal), std::nullopt);
  EXPECT_EQ(RatioOf({{kLocal, {100}}}, kAlone, Against::kLocal), std::nullopt);
  EXPECT_EQ(RatioOf({{kLocal, {100, 100}}, {kAlone, {80, 0}}}, kAlone, Against::kLocal), std::nullopt);
  EXPECT_EQ(RatioOf({{kLocal, {0, 100}}, {kAlone, {80, 80}}}, kAlone, Against::kLocal), std::nullopt);
}

// Returns the rows of PrintGoals, as they go to stdout.
std::vector<json> Goals(const std::vector<StepsLine>& lines, bool switch_matters = true) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  bench::PrintGoals(lines, switch_matters);
  testing::internal::GetCapturedStderr();
  std::vector<json> rows;
  for (const auto& line : absl::StrSplit(testing::internal::GetCapturedStdout(), '\n', absl::SkipEmpty()))
    rows.push_back(json::parse(std::string(line)));
  return rows;
}

json Goal(const std::vector<json>& goals, const std::string& what) {
  for (const json& goal : goals)
    if (goal.at("goal") == what) return goal;
  ADD_FAILURE() << "there is no goal '" << what << "'";
  return {};
}

const std::string kOfAlone = "mlp100 sgd alone, 1 worker, against local";
const std::string kOfTwoDirect = "mlp100 sgd async direct, 2 workers, against two_locals";
const std::string kOfSwitch = "mlp100 sgd local, 1 worker, against switch_off";

TEST(StepsGoalsTest, AreMetFromTheirBoundOn) {
  const std::vector<json> goals = Goals({{kLocal, {100}}, {kAlone, {98}}, {kTwoLocals, {100}}, {kTwoDirect, {94}}});
  const json met = Goal(goals, kOfAlone), missed = Goal(goals, kOfTwoDirect);
  EXPECT_EQ(met.at("met"), true) << met;
  EXPECT_EQ(met.at("reached"), 0.98);
  EXPECT_EQ(met.at("at_least"), 0.98);
  EXPECT_EQ(missed.at("met"), false) << missed;
  EXPECT_EQ(missed.at("reached"), 0.94);
}

TEST(StepsGoalsTest, OneThatWasNotMeasuredSaysWhy) {
  const auto why = [](const std::vector<json>& goals, const std::string& what) {
    const json goal = Goal(goals, what);
    EXPECT_TRUE(goal.at("met").is_null()) << goal;
    EXPECT_FALSE(goal.contains("reached")) << goal;
    return goal.at("why").get<std::string>();
  };
  EXPECT_EQ(why(Goals({{kLocal, {100}}}), kOfAlone), "not among what was asked for");
  EXPECT_EQ(why(Goals({{kLocal, {100}}, {kAlone, {0}}}), kOfAlone), "it failed");
  EXPECT_EQ(why(Goals({{kAlone, {98}}}), kOfAlone), "what it is compared with (local) wasn't measured, or failed");
  EXPECT_EQ(why(Goals({{kLocal, {100}}}, /*switch_matters=*/false), kOfSwitch),
            "on an Intel processor the switch changes nothing");
}

TEST(StepsGoalsTest, EachIsNamedOnce) {
  const std::vector<json> goals = Goals({});
  for (const json& goal : goals) {
    const auto same = [&](const json& other) { return other.at("goal") == goal.at("goal"); };
    EXPECT_EQ(std::count_if(goals.begin(), goals.end(), same), 1) << goal;
  }
}

}  // namespace
}  // namespace muster::steps_goals_test
