#include "muster/optim/optimizer_spec.h"

#include <gmock/gmock.h>

#include "muster/optim/rule_options.h"

namespace muster::optimizer_spec_test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kVariables = {"embedding.weight", "embedding.bias", "fc.weight", "fc.bias"};

// Takes an optimizer, like functions whose callers pass only a rule.
RuleKind KindFor(const OptimizerSpec& optimizer, const std::string& variable) {
  return optimizer.RuleFor(variable).kind;
}

TEST(OptimizerSpecTest, ARuleIsAnOptimizer) {
  EXPECT_EQ(KindFor(Adam(), "fc.weight"), RuleKind::kAdam);
  EXPECT_EQ(CheckOptimizer(Adam(), kVariables), absl::OkStatus());
  EXPECT_EQ(KindFor({}, "fc.weight"), RuleKind::kSgd);
}

TEST(OptimizerSpecTest, TheFirstGroupThatNamesAVariableWins) {
  const OptimizerSpec optimizer(Sgd(), {{{"embedding.bias", "nothing"}, Ftrl()},
                                        {{"embedding.*"}, Adagrad()},
                                        {{"fc.bias"}, Momentum()},
                                        {{"fc.b*"}, Adam()}});
  EXPECT_EQ(KindFor(optimizer, "embedding.bias"), RuleKind::kFtrl);
  EXPECT_EQ(KindFor(optimizer, "embedding.weight"), RuleKind::kAdagrad);
  EXPECT_EQ(KindFor(optimizer, "embedding."), RuleKind::kAdagrad);
  EXPECT_EQ(KindFor(optimizer, "embedding"), RuleKind::kSgd);
  EXPECT_EQ(KindFor(optimizer, "my.embedding.weight"), RuleKind::kSgd);
  EXPECT_EQ(KindFor(optimizer, "fc.bias"), RuleKind::kMomentum);
  EXPECT_EQ(KindFor(optimizer, "fc.bias2"), RuleKind::kAdam);
  EXPECT_EQ(KindFor(optimizer, "fc.weight"), RuleKind::kSgd);
  EXPECT_EQ(CheckOptimizer(optimizer, kVariables), absl::OkStatus());
  EXPECT_EQ(KindFor({Sgd(), {{{"*"}, Adam()}}}, "any"), RuleKind::kAdam);
  EXPECT_EQ(KindFor({Sgd(), {{{"f*c"}, Adam()}}}, "fc"), RuleKind::kSgd) << "only a last * stands for anything";
}

TEST(OptimizerSpecTest, AGroupThatNamesNothingIsRefused) {
  const absl::Status status = CheckOptimizer({Sgd(), {{{"fc.*"}, Adam()}, {{"embeding.*", "x"}, Adam()}}}, kVariables);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "parameter group 1 ('embeding.*', 'x') names no variable of the model; it has 4: embedding.weight, "
            "embedding.bias, fc.weight, fc.bias");
  EXPECT_TRUE(absl::IsInvalidArgument(CheckOptimizer({Sgd(), {{{}, Adam()}}}, kVariables)));
}

TEST(OptimizerSpecTest, EveryRuleIsChecked) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckOptimizer(Sgd({.learning_rate = -1}), kVariables)));
  const absl::Status status = CheckOptimizer({Sgd(), {{{"fc.*"}, Adam({.beta1 = 2})}}}, kVariables);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "parameter group 0 ('fc.*'): rule adam: beta1 is 2; accepted: at least 0 and below 1");
}

TEST(OptimizerSpecTest, AGlobalNormIsOfAllVariables) {
  const ClipSpec one = {ClipKind::kGlobalNorm, 1}, two = {ClipKind::kGlobalNorm, 2}, value = {ClipKind::kValue, 1};
  const auto check = [](const ClipSpec& of_default, const ClipSpec& of_group) {
    return CheckOptimizer({Sgd({.clip = of_default}), {{{"fc.*"}, Adam({.clip = of_group})}}}, kVariables);
  };
  EXPECT_EQ(check(one, one), absl::OkStatus());
  EXPECT_EQ(check(value, {}), absl::OkStatus());
  for (const absl::Status& status : {check(one, two), check(one, {}), check({}, one), check(value, one)})
    EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(check(one, {}).message()), HasSubstr("clips by none 0, the default rule by global_norm 1"));
}

}  // namespace
}  // namespace muster::optimizer_spec_test
