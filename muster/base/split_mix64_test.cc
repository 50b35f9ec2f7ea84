#include "muster/base/split_mix64.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::split_mix64_test {
namespace {

TEST(SplitMix64, GivesThePublishedSequence) {
  // The first outputs for state 1234567 from the authors' reference implementation (splitmix64.c, S. Vigna).
  SplitMix64 random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317u);
  EXPECT_EQ(random.Next(), 3203168211198807973u);
  EXPECT_EQ(random.Next(), 9817491932198370423u);
}

TEST(SplitMix64, BelowStaysBelowAndReachesAll) {
  SplitMix64 random(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) ++seen.at(random.Below(7));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 200);
}

}  // namespace
}  // namespace muster::split_mix64_test
