#include "muster/data/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace muster::shuffle_test {
namespace {

using ::testing::ElementsAre;

TEST(SplitMix64, GivesThePublishedSequence) {
  // The first outputs for state 1234567 of the authors' reference implementation (splitmix64.c, S. Vigna).
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

TEST(ShuffledOrder, IsAPermutationOfItsOwnPerSeedAndEpoch) {
  const auto order = ShuffledOrder(1000, 3, 0);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<size_t> all(1000);
  std::iota(all.begin(), all.end(), size_t{0});
  EXPECT_EQ(sorted, all);
  EXPECT_EQ(order, ShuffledOrder(1000, 3, 0));
  EXPECT_NE(order, ShuffledOrder(1000, 3, 1));
  EXPECT_NE(order, ShuffledOrder(1000, 4, 0));
  EXPECT_NE(ShuffledOrder(1000, 4, 0), ShuffledOrder(1000, 3, 1));
}

// Checkpoints hold positions in these orders: they must never change. Computed from the header's description by an
// independent few lines of Python.
TEST(ShuffledOrder, NeverChanges) {
  EXPECT_THAT(ShuffledOrder(8, 0, 0), ElementsAre(1, 2, 6, 5, 4, 0, 3, 7));
  EXPECT_THAT(ShuffledOrder(8, 42, 5), ElementsAre(5, 6, 2, 0, 1, 7, 3, 4));
  EXPECT_TRUE(ShuffledOrder(0, 0, 0).empty());
  EXPECT_THAT(ShuffledOrder(1, 0, 0), ElementsAre(0));
}

}  // namespace
}  // namespace muster::shuffle_test
