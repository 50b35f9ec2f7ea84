#include "muster/data/shuffle.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace muster::shuffle_test {
namespace {

using ::testing::ElementsAre;

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

// Checkpoints hold positions in these orders, so they must never change. Computed from the header's description by a
// few independent lines of Python.
TEST(ShuffledOrder, NeverChanges) {
  EXPECT_THAT(ShuffledOrder(8, 0, 0), ElementsAre(1, 2, 6, 5, 4, 0, 3, 7));
  EXPECT_THAT(ShuffledOrder(8, 42, 5), ElementsAre(5, 6, 2, 0, 1, 7, 3, 4));
  EXPECT_TRUE(ShuffledOrder(0, 0, 0).empty());
  EXPECT_THAT(ShuffledOrder(1, 0, 0), ElementsAre(0));
}

}  // namespace
}  // namespace muster::shuffle_test
