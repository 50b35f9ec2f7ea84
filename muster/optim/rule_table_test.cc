// What must be beside a rule's line in rule_table.h: one number and name each, its file in rules/, a reference to
// compare it with, the rule in the lists that the tests walk through.
#include "muster/optim/rule_table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "muster/base/testing/built_at.h"
#include "muster/optim/rule_descriptor.h"
#include "muster/optim/testing/reference_rule.h"

namespace muster::rule_table_test {
namespace {

struct Line {
  std::string name;
  int number;
};
const std::vector<Line> kLines = {
#define RULE(Name, number) {#Name, number},
    MUSTER_UPDATE_RULES(RULE)
#undef RULE
};

TEST(RuleTableTest, NumbersAreOfOneRuleAndFitTheWire) {
  std::set<int> numbers;
  for (const Line& line : kLines) {
    EXPECT_TRUE(numbers.insert(line.number).second) << line.number << " is " << line.name << "'s and another's";
    EXPECT_GE(line.number, 1) << line.name;
    EXPECT_LE(line.number, 255) << line.name;
  }
}

TEST(RuleTableTest, ADescriptorSaysTheKindOfItsLineAndANameOfItsOwn) {
  ASSERT_EQ(AllRules().size(), kLines.size());
  std::set<std::string> names;
  for (size_t i = 0; i < kLines.size(); ++i) {
    const RuleDescriptor& rule = *AllRules()[i];
    EXPECT_EQ(static_cast<int>(rule.kind), kLines[i].number) << "k" << kLines[i].name << "Rule has another's kind";
    EXPECT_TRUE(names.insert(rule.name).second) << "two rules are called " << rule.name;
    EXPECT_EQ(rule.standard().kind, rule.kind) << rule.name;
    EXPECT_EQ(CheckRule(rule.standard()), absl::OkStatus());
  }
}

TEST(RuleTableTest, EveryFileOfRulesDefinesWhatTheTableNames) {
  std::set<std::string> named, defined;
  for (const Line& line : kLines) named.insert(line.name);
  const std::regex definition("const RuleDescriptor k(\\w+)Rule = ");
  for (const auto& file : std::filesystem::directory_iterator(SourceFolder() + "/muster/optim/rules")) {
    if (file.path().extension() != ".cc" || file.path().stem().string().ends_with("_test")) continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const std::sregex_iterator first(text.begin(), text.end(), definition), end;
    EXPECT_NE(first, end) << file.path() << " defines no rule";
    for (auto match = first; match != end; ++match) defined.insert((*match)[1]);
  }
  EXPECT_EQ(defined, named) << "a rule of rules/ has no line in rule_table.h, or a line no rule";
}

TEST(RuleTableTest, EveryRuleHasAReference) {
  for (const RuleDescriptor* rule : AllRules()) {
    ReferenceElement element = {.p = 1, .s = {1, 1, 1}};
    EXPECT_TRUE(element.Apply(rule->standard(), 0.5, {.learning_rate = 0.1}))
        << "optim/testing/reference_rule.h has no reference of " << rule->name;
  }
}

}  // namespace
}  // namespace muster::rule_table_test
