#include "muster/optim/rule_text.h"

#include <gmock/gmock.h>

#include "muster/optim/rule_options.h"

namespace muster::rule_text_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

std::string Mistake(const std::string& text) {
  const auto rule = ParseRuleText(text);
  EXPECT_TRUE(absl::IsInvalidArgument(rule.status())) << text;
  return std::string(rule.status().message());
}

TEST(RuleText, ANameAloneIsTheRuleWithItsLibrarysDefaults) {
  EXPECT_EQ(ParseRuleText("sgd").value(), Sgd());
  EXPECT_EQ(ParseRuleText("momentum").value(), Momentum());
  EXPECT_EQ(ParseRuleText("adam").value(), Adam());
  EXPECT_EQ(ParseRuleText("adamw").value(), AdamW());
  EXPECT_EQ(ParseRuleText("adagrad").value(), Adagrad());
  EXPECT_EQ(ParseRuleText("rmsprop").value(), RmsProp());
  EXPECT_EQ(ParseRuleText("adadelta").value(), Adadelta());
  EXPECT_EQ(ParseRuleText("ftrl").value(), Ftrl());
  EXPECT_EQ(ParseRuleText("add").value(), PlainAdd());
}

TEST(RuleText, HyperparametersAreSetByName) {
  EXPECT_EQ(ParseRuleText("momentum:learning_rate=0.7,momentum=0.8,nesterov=1").value(),
            Momentum({.learning_rate = 0.7, .momentum = 0.8, .nesterov = true}));
  EXPECT_EQ(ParseRuleText("adam:beta1=0.5,beta2=0.6,epsilon=1e-5,learning_rate=2,weight_decay=0.25").value(),
            Adam({.learning_rate = 2, .beta1 = 0.5, .beta2 = 0.6, .epsilon = 1e-5, .weight_decay = 0.25}));
  EXPECT_EQ(ParseRuleText("rmsprop:rho=0.5,momentum=0.25,centered=1").value(),
            RmsProp({.rho = 0.5, .momentum = 0.25, .centered = true}));
  EXPECT_EQ(ParseRuleText("adagrad:learning_rate_decay=0.5,initial_accumulator=0.25").value(),
            Adagrad({.learning_rate_decay = 0.5, .initial_accumulator = 0.25}));
  EXPECT_EQ(ParseRuleText("ftrl:learning_rate_power=-0.25,l1=0.5,l2=0.75").value(),
            Ftrl({.learning_rate_power = -0.25, .l1 = 0.5, .l2 = 0.75}));
}

TEST(RuleText, SpellingIsForgiving) {
  EXPECT_EQ(ParseRuleText(" AdamW : Learning-Rate = 0.5 , beta1=0.5").value(),
            AdamW({.learning_rate = 0.5, .beta1 = 0.5}));
}

TEST(RuleText, ARuleThatThereIsntIsNamedWithTheNearest) {
  EXPECT_THAT(Mistake("adagard"), AllOf(HasSubstr("\"adagard\" (nearest: adagrad)"), HasSubstr("accepted: sgd, ")));
  EXPECT_THAT(Mistake("lion"), AllOf(HasSubstr("\"lion\"; accepted: "), HasSubstr(", add")));
  EXPECT_THAT(Mistake(""), HasSubstr("\"\""));
  EXPECT_THAT(Mistake("a\nb"), HasSubstr("a\\nb"));
}

TEST(RuleText, AHyperparameterThatTheRuleLacksIsNamedWithTheNearest) {
  EXPECT_THAT(Mistake("sgd:learning_rat=1"),
              HasSubstr("rule sgd has no hyperparameter \"learning_rat\" (nearest: learning_rate)"));
  EXPECT_THAT(Mistake("sgd:momentum=0.9"), HasSubstr("accepted: learning_rate, weight_decay"));
  EXPECT_THAT(Mistake("add:learning_rate=1"), HasSubstr("accepted: none"));
  EXPECT_THAT(Mistake("sgd:"), HasSubstr("no hyperparameter \"\""));
  EXPECT_THAT(Mistake("sgd:clip=1"), HasSubstr("\"clip\""));
}

TEST(RuleText, AValueMustBeOneThatTheRuleAccepts) {
  EXPECT_THAT(Mistake("sgd:learning_rate"), HasSubstr("learning_rate is \"\"; accepted: a number"));
  EXPECT_THAT(Mistake("sgd:learning_rate=fast"), HasSubstr("\"fast\""));
  EXPECT_THAT(Mistake("sgd:learning_rate=-1"), HasSubstr("learning_rate is -1"));
  EXPECT_THAT(Mistake("sgd:learning_rate=nan"), HasSubstr("learning_rate is nan"));
  EXPECT_THAT(Mistake("sgd:learning_rate=1e999"), HasSubstr("learning_rate is inf"));
  EXPECT_THAT(Mistake("adam:beta1=1"), HasSubstr("beta1 is 1"));
  EXPECT_THAT(Mistake("momentum:nesterov=yes"), HasSubstr("nesterov is \"yes\"; accepted: 0 or 1"));
  EXPECT_THAT(Mistake("sgd:learning_rate=1,learning-rate=2"), HasSubstr("learning_rate is given twice"));
}

TEST(RuleText, KnowsWhatATextSays) {
  EXPECT_TRUE(RuleTextSays("sgd:learning_rate=0.01", "learning_rate"));
  EXPECT_TRUE(RuleTextSays("sgd:weight_decay=1, Learning-Rate=0.5", "learning_rate"));
  EXPECT_FALSE(RuleTextSays("sgd", "learning_rate"));
  EXPECT_FALSE(RuleTextSays("adagrad:learning_rate_decay=0.1", "learning_rate"));
}

TEST(RuleText, SaysOnlyWhatIsNotTheDefault) {
  EXPECT_EQ(RuleText(Adam()), "adam");
  EXPECT_EQ(RuleText(AdamW({.weight_decay = 0})), "adamw:weight_decay=0");
  EXPECT_EQ(RuleText(Adagrad({.learning_rate = 0.1})), "adagrad:learning_rate=0.1");
  EXPECT_EQ(RuleText(Momentum({.learning_rate = 0.7, .nesterov = true})), "momentum:learning_rate=0.7,nesterov=1");
  EXPECT_EQ(RuleText(PlainAdd()), "add");
  EXPECT_EQ(RuleTextWithRate(Adam()), "adam:learning_rate=0.001");
  EXPECT_EQ(RuleTextWithRate(Momentum({.nesterov = true})), "momentum:learning_rate=0.01,nesterov=1");
  EXPECT_EQ(RuleTextWithRate(PlainAdd()), "add");
}

TEST(RuleText, IsReadAsTheSameRule) {
  for (const RuleSpec& rule :
       {Sgd({.learning_rate = 1.0 / 3}), Momentum({.momentum = 0.1 + 0.2, .nesterov = true}),
        Adam({.learning_rate = 1e-300, .epsilon = 1.2345678901234567e-10}), AdamW({.beta2 = 0.999999}),
        Adagrad({.learning_rate_decay = 0.1, .initial_accumulator = 3}), RmsProp({.centered = true}),
        Adadelta({.rho = 0.95}), Ftrl({.learning_rate_power = -1, .l1 = 0.1, .l2 = 0.2}), PlainAdd()}) {
    EXPECT_EQ(ParseRuleText(RuleText(rule)).value(), rule) << RuleText(rule);
  }
}

TEST(RuleText, LeavesOutClippingAndSchedules) {
  EXPECT_EQ(RuleText(Sgd({.learning_rate = 0.5, .clip = {ClipKind::kNorm, 1}})), "sgd:learning_rate=0.5");
}

}  // namespace
}  // namespace muster::rule_text_test
