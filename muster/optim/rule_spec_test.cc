#include "muster/optim/rule_spec.h"

#include <gmock/gmock.h>

#include <limits>

#include "muster/optim/rule_options.h"
#include "muster/optim/update_rule.h"

namespace muster::rule_spec_test {
namespace {

using ::testing::HasSubstr, ::testing::Pair, ::testing::UnorderedElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(RuleSpecTest, NamesRoundTripAndNumbersStay) {
  const char* const names[] = {"sgd", "momentum", "adam", "adagrad", "adamw", "rmsprop", "adadelta", "ftrl", "add"};
  for (int number = 1; number <= 9; ++number) {
    auto parsed = ParseRule(names[number - 1]).value();
    EXPECT_EQ(static_cast<int>(parsed), number);
    EXPECT_EQ(RuleName(parsed), names[number - 1]);
  }
  EXPECT_EQ(ParseRule("sdg").status().message(),
            "unknown update rule 'sdg'; accepted: sgd, momentum, adam, adagrad, adamw, rmsprop, adadelta, ftrl, add");
}

std::string Refusal(const RuleSpec& spec) {
  const absl::Status status = CheckRule(spec);
  EXPECT_EQ(MakeUpdateRule(spec).status(), status);
  if (status.ok()) return "accepted";
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST(RuleSpecTest, RefusalsNameTheHyperparameterItsValueAndWhatIsAccepted) {
  EXPECT_EQ(Refusal({.learning_rate = -0.5}), "rule sgd: learning_rate is -0.5; accepted: a finite number, at least 0");
  EXPECT_THAT(Refusal({.learning_rate = kNaN}), HasSubstr("learning_rate is nan"));
  EXPECT_THAT(Refusal({.learning_rate = std::numeric_limits<double>::infinity()}), HasSubstr("learning_rate is inf"));
  EXPECT_EQ(Refusal(Momentum({.momentum = 1})), "rule momentum: momentum is 1; accepted: at least 0 and below 1");
  EXPECT_EQ(Refusal(Momentum({.momentum = 0, .nesterov = true})),
            "rule momentum: momentum is 0; accepted: above 0 and below 1 where nesterov is on");
  EXPECT_EQ(Refusal(Adam({.beta1 = -0.1})), "rule adam: beta1 is -0.1; accepted: at least 0 and below 1");
  EXPECT_THAT(Refusal(AdamW({.beta2 = kNaN})), HasSubstr("rule adamw: beta2 is nan"));
  EXPECT_EQ(Refusal(Adam({.epsilon = 0})), "rule adam: epsilon is 0; accepted: a finite number, at least 1.2e-38");
  EXPECT_EQ(Refusal(Sgd({.weight_decay = -1})), "rule sgd: weight_decay is -1; accepted: a finite number, at least 0");
  EXPECT_THAT(Refusal(Adagrad({.learning_rate_decay = -1})), HasSubstr("learning_rate_decay is -1"));
  EXPECT_THAT(Refusal(Adagrad({.initial_accumulator = -1})), HasSubstr("initial_accumulator is -1"));
  EXPECT_THAT(Refusal(Adagrad({.epsilon = -1})), HasSubstr("epsilon is -1"));
  EXPECT_THAT(Refusal(RmsProp({.rho = 1})), HasSubstr("rho is 1"));
  EXPECT_THAT(Refusal(RmsProp({.momentum = 2})), HasSubstr("momentum is 2"));
  EXPECT_THAT(Refusal(Adadelta({.epsilon = kNaN})), HasSubstr("epsilon is nan"));
  EXPECT_EQ(Refusal(Ftrl({.learning_rate_power = 0.5})),
            "rule ftrl: learning_rate_power is 0.5; accepted: a finite number, at most 0");
  EXPECT_THAT(Refusal(Ftrl({.l1 = -1})), HasSubstr("l1 is -1"));
  EXPECT_THAT(Refusal(Ftrl({.l2 = kNaN})), HasSubstr("l2 is nan"));
  EXPECT_EQ(Refusal(Sgd({.clip = {ClipKind::kNorm, 0}})),
            "rule sgd: clipping by norm: limit is 0; accepted: a finite number above 0");
  EXPECT_EQ(Refusal(Sgd({.schedule = {.kind = ScheduleKind::kStep}})),
            "rule sgd: schedule step: decay_steps is 0; accepted: at least 1");
  EXPECT_EQ(Refusal({.kind = static_cast<RuleKind>(77)}),
            "unknown update rule number 77; accepted: 1 to 9 (sgd, momentum, adam, adagrad, adamw, rmsprop, adadelta, "
            "ftrl, add)");
  EXPECT_THAT(Refusal({.kind = static_cast<RuleKind>(0)}), HasSubstr("number 0"));
}

TEST(RuleSpecTest, WhatARuleDoesntUseItDoesntJudge) {
  EXPECT_EQ(Refusal({.kind = RuleKind::kSgd, .momentum = 7, .beta1 = 7, .rho = 7, .l1 = -1}), "accepted");
  EXPECT_EQ(Refusal({.kind = RuleKind::kAdd, .learning_rate = -1, .weight_decay = -1}), "accepted");
  EXPECT_EQ(Refusal({.learning_rate = 0}), "accepted");
  for (int kind = 1; kind <= 9; ++kind) EXPECT_EQ(Refusal({.kind = static_cast<RuleKind>(kind)}), "accepted");
}

TEST(RuleSpecTest, WholeNumbersAreOnlyAddedTo) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
    for (int kind = 1; kind <= 9; ++kind)
      EXPECT_EQ(CheckRuleFor({.kind = static_cast<RuleKind>(kind)}, dtype), absl::OkStatus());
  EXPECT_EQ(CheckRuleFor(PlainAdd(), DType::kInt64), absl::OkStatus());
  EXPECT_EQ(CheckRuleFor(PlainAdd(), DType::kUInt8), absl::OkStatus());
  for (int kind = 1; kind <= 8; ++kind) {
    const absl::Status status = CheckRuleFor({.kind = static_cast<RuleKind>(kind)}, DType::kInt64);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << kind;
  }
  EXPECT_EQ(
      CheckRuleFor(Sgd(), DType::kUInt8).message(),
      "rule sgd can't update variables of type uint8; accepted: float32, float64, float16, bfloat16, and for rule "
      "add also int64, uint8");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRuleFor(PlainAdd(), DType::kInt32)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRuleFor(PlainAdd(), DType::kBool)));
  EXPECT_THAT(std::string(CheckRuleFor(PlainAdd({.clip = {ClipKind::kValue, 1}}), DType::kInt64).message()),
              HasSubstr("can't be clipped (by value)"));
}

TEST(RuleSpecTest, DefaultsAreThoseOfTheLibraries) {
  EXPECT_THAT(Hyperparameters(Sgd()), UnorderedElementsAre(Pair("learning_rate", 0.01)));
  EXPECT_THAT(Hyperparameters(Momentum()),
              UnorderedElementsAre(Pair("learning_rate", 0.01), Pair("momentum", 0.9), Pair("nesterov", 0)));
  EXPECT_THAT(Hyperparameters(AdamW()),
              UnorderedElementsAre(Pair("learning_rate", 0.001), Pair("beta1", 0.9), Pair("beta2", 0.999),
                                   Pair("epsilon", 1e-8), Pair("weight_decay", 0.01)));
  EXPECT_THAT(Hyperparameters(Adagrad()),
              UnorderedElementsAre(Pair("learning_rate", 0.01), Pair("learning_rate_decay", 0),
                                   Pair("initial_accumulator", 0), Pair("epsilon", 1e-10)));
  EXPECT_THAT(Hyperparameters(RmsProp()),
              UnorderedElementsAre(Pair("learning_rate", 0.01), Pair("rho", 0.99), Pair("momentum", 0),
                                   Pair("epsilon", 1e-8), Pair("centered", 0)));
  EXPECT_THAT(Hyperparameters(Adadelta()),
              UnorderedElementsAre(Pair("learning_rate", 1), Pair("rho", 0.9), Pair("epsilon", 1e-6)));
  EXPECT_THAT(Hyperparameters(Ftrl()),
              UnorderedElementsAre(Pair("learning_rate", 0.001), Pair("learning_rate_power", -0.5),
                                   Pair("initial_accumulator", 0.1), Pair("l1", 0), Pair("l2", 0)));
  EXPECT_TRUE(Hyperparameters(PlainAdd()).empty());
}

TEST(RuleSpecTest, HyperparametersSayHowGradientAndRateAreShaped) {
  EXPECT_THAT(Hyperparameters(PlainAdd({.clip = {ClipKind::kValue, 2}})), UnorderedElementsAre(Pair("clip_value", 2)));
  const ScheduleSpec polynomial = {
      .kind = ScheduleKind::kPolynomial, .decay_steps = 7, .cycle = true, .warmup_steps = 3, .warmup_from = 0.5};
  EXPECT_THAT(Hyperparameters(Sgd({.clip = {ClipKind::kGlobalNorm, 5}, .schedule = polynomial})),
              UnorderedElementsAre(Pair("learning_rate", 0.01), Pair("clip_global_norm", 5), Pair("schedule", 3),
                                   Pair("decay_steps", 7), Pair("end_learning_rate", 0.0001), Pair("power", 1),
                                   Pair("cycle", 1), Pair("warmup_steps", 3), Pair("warmup_from", 0.5)));
}

}  // namespace
}  // namespace muster::rule_spec_test
