// Interleave, compared with the orders in TensorFlow's documentation.
#include <gmock/gmock.h>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::interleave_test {
namespace {

using ::testing::ElementsAre;

// A data set of `number`, `times` times.
Dataset Same(int64_t number, int64_t times) { return NumberedRows(number + 1).Skip(number).Repeat(times); }

// tf.data.Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), cycle_length=2, block_length=4)
TEST(Interleave, BlocksOfACycleInTurn) {
  const Dataset dataset = Dataset::Interleave({Same(1, 6), Same(2, 6), Same(3, 6), Same(4, 6), Same(5, 6)},
                                              {.cycle_length = 2, .block_length = 4});
  EXPECT_THAT(Flat(DrawAll(dataset)),
              ElementsAre(1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5));
}

TEST(Interleave, SourcesOfUnlikeLengths) {
  const Dataset dataset =
      Dataset::Interleave({NumberedRows(1), StreamedNumbers(4), NumberedRows(0), Same(7, 2)}, {.cycle_length = 2});
  // 0 | 0, then the first has ended: 1 of the second; the third is empty: 2, then the fourth; 3, then the fourth.
  EXPECT_THAT(Flat(DrawAll(dataset)), ElementsAre(0, 0, 1, 2, 7, 3, 7));
  EXPECT_EQ(DrawAll(dataset.Repeat(2)).size(), 14);
}

TEST(Interleave, EachSourceHasItsOwnOrderInAnEpoch) {
  const Dataset shuffled = NumberedRows(10).Shuffle({.seed = 4});
  const auto drawn = DrawAll(Dataset::Interleave({shuffled}).Repeat(3));
  EXPECT_EQ(drawn, DrawAll(shuffled.Repeat(3)));
}

TEST(Interleave, AnErrorOfASourceIsPassedOn) {
  auto stream = OpenOrFail(Dataset::Interleave({NumberedRows(5), StreamedNumbers(1, absl::DataLossError("line 2"))}));
  EXPECT_EQ(DrawAll(NumberedRows(1)), Draw(*stream, 1));
  Example element;
  EXPECT_TRUE(*stream->Next(element));
  EXPECT_TRUE(*stream->Next(element));
  EXPECT_EQ(stream->Next(element).status(), absl::DataLossError("line 2"));
}

}  // namespace
}  // namespace muster::interleave_test
