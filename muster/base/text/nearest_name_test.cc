#include "muster/base/text/nearest_name.h"

#include <gtest/gtest.h>

namespace muster::nearest_name_test {
namespace {

TEST(NearestName, CountsTheLettersThatMustChange) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("window", "window"), 0);
  EXPECT_EQ(EditDistance("widow", "window"), 1);
  EXPECT_EQ(EditDistance("windoww", "window"), 1);
  EXPECT_EQ(EditDistance("wendow", "window"), 1);
  EXPECT_EQ(EditDistance("wnidow", "window"), 1);  // two swapped neighbours count as one mistake
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);
}

TEST(NearestName, IsTheFirstOfTheNearest) {
  const std::vector<std::string> names = {"adam", "adamw", "adagrad", "sgd"};
  EXPECT_EQ(NearestName("adan", names), "adam");
  EXPECT_EQ(NearestName("ADAMW", names), "adamw");
  EXPECT_EQ(NearestName("adgard", names), "adagrad");
  EXPECT_EQ(NearestName("sdg", names), "sgd");
  EXPECT_EQ(NearestName("adamx", names), "adam");  // adamw is as near
}

TEST(NearestName, IsNothingWhereNoneIsMeant) {
  const std::vector<std::string> names = {"adam", "sgd"};
  EXPECT_EQ(NearestName("lion", names), "");
  EXPECT_EQ(NearestName("add", names), "");  // two of three letters differ
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName("x", {}), "");
  EXPECT_EQ(NearestName(std::string(1000000, 'a'), names), "");
  EXPECT_EQ(NearestHint("lion", names), "");
  EXPECT_EQ(NearestHint("adaam", names), " (nearest: adam)");
}

}  // namespace
}  // namespace muster::nearest_name_test
