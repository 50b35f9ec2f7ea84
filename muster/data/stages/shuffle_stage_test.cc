// Shuffle of a source that can't be read by number: from a buffer.
#include <gmock/gmock.h>

#include <algorithm>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::shuffle_stage_test {
namespace {

using ::testing::ElementsAre;

TEST(BufferedShuffle, ABufferOfOneLeavesTheOrder) {
  EXPECT_THAT(Flat(DrawAll(StreamedNumbers(5).Shuffle({.seed = 1, .buffer_size = 1}))), ElementsAre(0, 1, 2, 3, 4));
}

TEST(BufferedShuffle, NothingComesBeforeItCanBeInTheBuffer) {
  constexpr int64_t kBuffer = 10;
  const auto drawn = Flat(DrawAll(StreamedNumbers(200).Shuffle({.seed = 1, .buffer_size = kBuffer})));
  ASSERT_EQ(drawn.size(), 200);
  bool late = false;
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_LT(drawn[i], i + kBuffer);
    late = late || drawn[i] < i - kBuffer;
  }
  EXPECT_TRUE(late) << "some stay in the buffer for long";
  auto sorted = drawn;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, Flat(DrawAll(StreamedNumbers(200))));
}

// Checkpoints hold positions in this order. Computed from docs/input.md by a few lines of Python.
TEST(BufferedShuffle, ItsOrderNeverChanges) {
  EXPECT_THAT(Flat(DrawAll(StreamedNumbers(8).Shuffle({.seed = 42, .buffer_size = 3}))),
              ElementsAre(1, 0, 3, 4, 6, 5, 7, 2));
  EXPECT_THAT(Flat(DrawAll(StreamedNumbers(8).Shuffle({.seed = 42}))), ElementsAre(4, 1, 0, 5, 3, 7, 2, 6));
}

}  // namespace
}  // namespace muster::shuffle_stage_test
