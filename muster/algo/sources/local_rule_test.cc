#include "muster/algo/sources/local_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "muster/algo/sources/quadratic_source.h"
#include "muster/optim/rule_options.h"

namespace muster::local_rule_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3}},
                                              {.name = "frozen", .shape = {2}, .kind = VariableKind::kFrozen}};

class LocalRuleTest : public ::testing::Test {
 protected:
  LocalRuleTest() : values_{source_.value(0), source_.value(1)} { EXPECT_TRUE(source_.ComputeGradients().ok()); }
  float w(size_t i) { return source_.values(0)[i]; }

  QuadraticSource source_{kVariables};
  const std::vector<MutableByteSpan> values_;
};

TEST_F(LocalRuleTest, UpdatesTrainableVariablesWithSlotsOfItsOwn) {
  LocalRule rule(kVariables, Adagrad({.learning_rate = 0.5, .initial_accumulator = 3}));
  double expected = 0, accumulator = 3;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(source_.ComputeGradients().ok());
    const double gradient = expected - 1;
    accumulator += gradient * gradient;
    expected -= 0.5 * gradient / (std::sqrt(accumulator) + 1e-10);
    EXPECT_TRUE(rule.Apply(source_, values_, {}, 0).value());
    EXPECT_NEAR(w(0), expected, 1e-6);
  }
  EXPECT_EQ(source_.values(1)[0], 0) << "frozen";
}

TEST_F(LocalRuleTest, AdamsNumberOfTheUpdateIsItsOwn) {
  LocalRule rule(kVariables, Adam({.learning_rate = 0.1}));
  EXPECT_TRUE(rule.Apply(source_, values_, {}, 1000).value());
  EXPECT_NEAR(w(0), 0.1, 1e-6) << "the first update of Adam is as long as the rate";
}

TEST_F(LocalRuleTest, SchedulesGoByTheGlobalStep) {
  LocalRule rule(kVariables, Sgd({.learning_rate = 0.5,
                                  .schedule = {.kind = ScheduleKind::kStep, .decay_steps = 10, .decay_rate = 0.1}}));
  EXPECT_TRUE(rule.Apply(source_, values_, {}, 10).value());
  EXPECT_NEAR(w(0), 0.05, 1e-6);
}

TEST_F(LocalRuleTest, ClipsByTheNormOfAllGradients) {
  LocalRule rule(kVariables, Sgd({.learning_rate = 1, .clip = {.kind = ClipKind::kGlobalNorm, .limit = 1}}));
  EXPECT_TRUE(rule.Apply(source_, values_, {}, 0).value());
  EXPECT_NEAR(w(2), 3 / std::sqrt(14.0), 1e-6);
}

TEST_F(LocalRuleTest, TheSameGradientMovesWhatElseIsGiven) {
  LocalRule rule(kVariables, Sgd({.learning_rate = 0.5}));
  std::vector<float> velocity = {10, 20, 30};
  const std::vector<MutableByteSpan> moves = {AsMutableBytes(velocity.data(), velocity.size()), {}};
  EXPECT_TRUE(rule.Apply(source_, values_, moves, 0).value());
  EXPECT_EQ(velocity, (std::vector<float>{10.5, 21, 31.5}));
}

TEST_F(LocalRuleTest, WhatIsNotFiniteIsDropped) {
  source_.values(0)[1] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(source_.ComputeGradients().ok());
  OptimizerSpec spec = Sgd({.learning_rate = 0.5});
  spec.non_finite = NonFinite::kDrop;
  LocalRule dropping(kVariables, spec);
  EXPECT_FALSE(dropping.Apply(source_, values_, {}, 0).value());
  EXPECT_EQ(w(0), 0);
  spec.non_finite = NonFinite::kStop;
  LocalRule stopping(kVariables, spec);
  EXPECT_TRUE(absl::IsInvalidArgument(stopping.Apply(source_, values_, {}, 0).status()));
}

}  // namespace
}  // namespace muster::local_rule_test
