// Cache: the stages before it make each element once.
#include <gtest/gtest.h>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::cache_test {
namespace {

class CacheTest : public testing::TestWithParam<bool> {
 protected:
  // Counts the examples made in made_.
  Dataset Counted(int64_t rows) {
    return (GetParam() ? StreamedNumbers(rows) : NumberedRows(rows)).Map([this](Example&) {
      ++made_;
      return absl::OkStatus();
    });
  }
  int made_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Sources, CacheTest, testing::Bool(),
                         [](const auto& streamed) { return streamed.param ? "Streamed" : "Memory"; });

TEST_P(CacheTest, EachExampleIsMadeOnce) {
  const Dataset cached = Counted(10).Cache();
  const auto drawn = DrawAll(cached.Batch(3).Repeat(3));
  EXPECT_EQ(drawn, DrawAll(NumberedRows(10).Batch(3).Repeat(3)));
  EXPECT_EQ(made_, 10);
  EXPECT_EQ(DrawAll(cached.Shuffle({.seed = 1}).Repeat(2)).size(), 20);
  EXPECT_EQ(made_, 10) << "another stream has them too";
}

TEST_P(CacheTest, EveryEpochIsAsTheFirst) {
  const auto drawn = Flat(DrawAll(Counted(10).Shuffle({.seed = 1}).Cache().Repeat(2)));
  const auto first = Flat(DrawAll(Counted(10).Shuffle({.seed = 1})));
  EXPECT_EQ(std::vector<int64_t>(drawn.begin(), drawn.begin() + 10), first);
  EXPECT_EQ(std::vector<int64_t>(drawn.begin() + 10, drawn.end()), first);
}

TEST_P(CacheTest, ARestoredStreamHasNothingYet) {
  const auto pipeline = [this] { return Counted(10).Shuffle({.seed = 1}).Cache().Batch(3).Repeat(); };
  auto first = OpenOrFail(pipeline());
  Draw(*first, 6);
  const std::string saved = first->SavePosition();
  const auto expected = Draw(*first, 6);
  auto second = OpenOrFail(pipeline());
  ASSERT_EQ(second->RestorePosition(saved), absl::OkStatus());
  EXPECT_EQ(Draw(*second, 6), expected);
}

TEST_P(CacheTest, AnEpochThatWasLeftEarlyIsNotTakenForAllThereIs) {
  const Dataset cached = Counted(10).Cache();
  DrawAll(cached, 3);
  EXPECT_EQ(DrawAll(cached).size(), 10);
}

}  // namespace
}  // namespace muster::cache_test
