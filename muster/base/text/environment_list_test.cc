#include "muster/base/text/environment_list.h"

#include <gtest/gtest.h>

namespace muster::environment_list_test {
namespace {

const std::vector<std::string>& Environment() {
  static const std::vector<std::string> environment = {"HOMELY=1", "HOME=/h=1", "EMPTY=", "BARE", "HOME=second"};
  return environment;
}

TEST(EnvironmentListTest, TheWholeNameCounts) {
  EXPECT_TRUE(IsVariable("HOME=/h=1", "HOME"));
  EXPECT_TRUE(IsVariable("EMPTY=", "EMPTY"));
  EXPECT_FALSE(IsVariable("HOMELY=1", "HOME"));
  EXPECT_FALSE(IsVariable("HOME", "HOME"));
  EXPECT_FALSE(IsVariable("HOM=1", "HOME"));
  EXPECT_FALSE(IsVariable("", "HOME"));
}

TEST(EnvironmentListTest, TheFirstOfTwoCounts) {
  EXPECT_EQ(FindVariableIn(Environment(), "HOME"), "/h=1");
  EXPECT_EQ(VariableIn(Environment(), "HOME"), "/h=1");
}

TEST(EnvironmentListTest, AnEmptyVariableIsThereAndAMissingOneIsNot) {
  EXPECT_EQ(FindVariableIn(Environment(), "EMPTY"), "");
  for (const char* missing : {"HOM", "BARE", "h", "home"}) {
    EXPECT_EQ(FindVariableIn(Environment(), missing), std::nullopt) << missing;
    EXPECT_EQ(VariableIn(Environment(), missing), "") << missing;
  }
  EXPECT_EQ(VariableIn(Environment(), "EMPTY"), "");
}

}  // namespace
}  // namespace muster::environment_list_test
