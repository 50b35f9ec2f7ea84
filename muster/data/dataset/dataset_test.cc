#include "muster/data/dataset/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "muster/base/wrong_configuration.h"
#include "muster/data/shuffle.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::dataset_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

std::vector<int64_t> Sorted(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The same elements from rows in memory and from a stream: most stages treat these differently.
class EitherSourceTest : public testing::TestWithParam<bool> {
 protected:
  static Dataset Source(int64_t rows) { return GetParam() ? StreamedNumbers(rows) : NumberedRows(rows); }
};
INSTANTIATE_TEST_SUITE_P(Sources, EitherSourceTest, testing::Bool(),
                         [](const auto& streamed) { return streamed.param ? "Streamed" : "Memory"; });

TEST_P(EitherSourceTest, ExamplesInTheirOrder) {
  EXPECT_THAT(DrawAll(Source(3)), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_P(EitherSourceTest, BatchesWithAShortLastOneInEachEpoch) {
  EXPECT_THAT(DrawAll(Source(5).Batch(2).Repeat(2)), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4),
                                                                 ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
}

TEST_P(EitherSourceTest, BatchesWithoutTheRemainder) {
  EXPECT_THAT(DrawAll(Source(5).Batch(2, /*drop_remainder=*/true).Repeat(2)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST_P(EitherSourceTest, BatchesOverTheEndOfAnEpochBehindRepeat) {
  EXPECT_THAT(DrawAll(Source(3).Repeat(2).Batch(2)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 0), ElementsAre(1, 2)));
}

TEST_P(EitherSourceTest, ABatchHasTheRowsShapeBehindItsOwn) {
  auto stream = OpenOrFail(Source(5).Batch(3));
  Example batch;
  ASSERT_TRUE(*stream->Next(batch));
  EXPECT_THAT(batch.features[0].value.shape(), ElementsAre(3, 2));
  EXPECT_THAT(batch.labels.shape(), ElementsAre(3));
  ASSERT_TRUE(*stream->Next(batch));
  EXPECT_THAT(batch.features[0].value.shape(), ElementsAre(2, 2));
  ASSERT_FALSE(*stream->Next(batch));
  EXPECT_THAT(batch.labels.As<int64_t>(), ElementsAre(3, 4)) << "the end leaves it as it was";
}

TEST_P(EitherSourceTest, TakeAndSkip) {
  EXPECT_THAT(Flat(DrawAll(Source(6).Skip(2).Take(3))), ElementsAre(2, 3, 4));
  EXPECT_THAT(Flat(DrawAll(Source(3).Take(9))), ElementsAre(0, 1, 2));
  EXPECT_THAT(Flat(DrawAll(Source(3).Skip(9))), ElementsAre());
  EXPECT_THAT(Flat(DrawAll(Source(3).Take(2).Repeat(2))), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Flat(DrawAll(Source(3).Repeat().Skip(2).Take(3))), ElementsAre(2, 0, 1));
}

TEST_P(EitherSourceTest, ShardsDivideEachEpoch) {
  std::vector<int64_t> all;
  for (size_t shard = 0; shard < 3; ++shard) {
    const auto part = Flat(DrawAll(Source(10).Shard(3, shard)));
    EXPECT_EQ(part.size(), shard == 0 ? 4 : 3);
    EXPECT_EQ(part[1] - part[0], 3);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(Sorted(all), Numbers(10));
}

TEST_P(EitherSourceTest, EachEpochHoldsEveryRowInAnOrderOfItsOwn) {
  const auto drawn = Flat(DrawAll(Source(50).Shuffle({.seed = 7}).Repeat(2)));
  const std::vector<int64_t> first(drawn.begin(), drawn.begin() + 50), second(drawn.begin() + 50, drawn.end());
  EXPECT_EQ(Sorted(first), Numbers(50));
  EXPECT_EQ(Sorted(second), Numbers(50));
  EXPECT_NE(first, Numbers(50));
  EXPECT_NE(first, second);
  EXPECT_EQ(drawn, Flat(DrawAll(Source(50).Shuffle({.seed = 7}).Repeat(2))));
  EXPECT_NE(drawn, Flat(DrawAll(Source(50).Shuffle({.seed = 8}).Repeat(2))));
  const auto alike = Flat(DrawAll(Source(50).Shuffle({.seed = 7, .reshuffle_each_iteration = false}).Repeat(2)));
  EXPECT_TRUE(std::equal(alike.begin(), alike.begin() + 50, alike.begin() + 50));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), alike.begin()));
}

TEST_P(EitherSourceTest, RepeatsCountEpochsThroughEachOther) {
  const Dataset shuffled = Source(20).Shuffle({.seed = 1});
  EXPECT_EQ(DrawAll(shuffled.Repeat(2).Repeat(3)), DrawAll(shuffled.Repeat(6)));
}

TEST_P(EitherSourceTest, AnEmptySourceEndsHoweverOftenItIsRepeated) {
  EXPECT_THAT(DrawAll(Source(0)), ElementsAre());
  EXPECT_THAT(DrawAll(Source(0).Shuffle().Shard(2, 1).Batch(3, true).Repeat().Prefetch()), ElementsAre());
}

TEST_P(EitherSourceTest, TheEndStaysOne) {
  auto stream = OpenOrFail(Source(1));
  Draw(*stream);
  Example element;
  EXPECT_FALSE(*stream->Next(element));
  EXPECT_FALSE(*stream->Next(element));
}

TEST_P(EitherSourceTest, NothingComesOnceStopped) {
  auto stream = OpenOrFail(Source(5).Map([](Example&) { return absl::OkStatus(); }).Batch(2).Repeat().Prefetch());
  Draw(*stream, 1);
  stream->Stop();
  stream->Stop();
  Example element;
  EXPECT_TRUE(absl::IsCancelled(stream->Next(element).status()));
}

// Shown in docs/input.md.
TEST(Dataset, WorkersDivideAnEpochInANewWayEachTime) {
  // [workers]
  Example all{.labels = Array::Of<int64_t>({4}, {0, 1, 2, 3}), .has_labels = true};
  all.features.push_back({"x", Array::Of<float>({4, 2}, {0, 0, 1, -1, 2, -2, 3, -3})});
  const Dataset rows = Dataset::FromMemory(std::move(all));

  std::vector<std::unique_ptr<ExampleStream>> workers;
  for (size_t worker = 0; worker < 2; ++worker) {
    workers.push_back(rows.Shuffle({.seed = 3}).Shard(2, worker).Batch(2).Repeat(2).Prefetch().Open().value());
  }
  Example batch;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int64_t> seen;
    for (const auto& stream : workers) {
      ASSERT_TRUE(*stream->Next(batch));
      for (const int64_t label : batch.labels.As<int64_t>()) seen.push_back(label);
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAre(0, 1, 2, 3));
  }
  EXPECT_FALSE(*workers[0]->Next(batch));
  // [/workers]
}

// Checkpoints and recorded curves depend on this: place shard + i * shards of each epoch's order, in batches that end
// with the epoch.
TEST(Dataset, TheOrderOfShuffledShardsNeverChanges) {
  constexpr size_t kRows = 23, kShards = 2, kBatch = 4;
  for (size_t shard = 0; shard < kShards; ++shard) {
    DrawnLabels expected;
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<size_t> order = ShuffledOrder(kRows, 9, epoch);
      std::vector<int64_t> own;
      for (size_t i = shard; i < kRows; i += kShards) own.push_back(static_cast<int64_t>(order[i]));
      for (size_t i = 0; i < own.size(); i += kBatch) {
        expected.emplace_back(own.begin() + i, own.begin() + std::min(i + kBatch, own.size()));
      }
    }
    const Dataset shuffled = NumberedRows(kRows).Shuffle({.seed = 9}).Shard(kShards, shard);
    EXPECT_EQ(DrawAll(shuffled.Batch(kBatch).Repeat(), expected.size()), expected);
  }
  // The order of epoch 5, which shuffle_test.cc has from an independent computation.
  const auto drawn = DrawAll(NumberedRows(8).Shuffle({.seed = 42}).Batch(8).Repeat(6));
  EXPECT_THAT(drawn.back(), ElementsAre(5, 6, 2, 0, 1, 7, 3, 4));
}

TEST(Dataset, FromRowsBorrowsThem) {
  const auto rows = std::make_shared<const LabelledRows>(*LabelledRows::Create(3, {1, 2, 3, 4, 5, 6}, {7, 8}));
  auto stream = OpenOrFail(Dataset::FromRows(rows).Batch(5));
  Example batch;
  ASSERT_TRUE(*stream->Next(batch));
  EXPECT_THAT(batch.Find("features")->shape(), ElementsAre(2, 3));
  EXPECT_THAT(batch.Find("features")->As<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch.labels.As<int64_t>(), ElementsAre(7, 8));
}

TEST(Dataset, RowsOfEveryWidthAndWithoutLabels) {
  Example all;
  all.features.push_back({"byte", Array::Of<uint8_t>({3}, {1, 2, 3})});
  all.features.push_back({"word", Array::Of<int32_t>({3}, {4, 5, 6})});
  all.features.push_back({"long", Array::Of<double>({3, 1, 2}, {1, 2, 3, 4, 5, 6})});
  all.features.push_back({"none", Array::Of<float>({3, 0}, std::vector<float>())});
  auto stream = OpenOrFail(Dataset::FromMemory(std::move(all)).Skip(1).Batch(2));
  Example batch;
  ASSERT_TRUE(*stream->Next(batch));
  EXPECT_FALSE(batch.has_labels);
  EXPECT_THAT(batch.Find("byte")->As<uint8_t>(), ElementsAre(2, 3));
  EXPECT_THAT(batch.Find("word")->As<int32_t>(), ElementsAre(5, 6));
  EXPECT_THAT(batch.Find("long")->As<double>(), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(batch.Find("long")->shape(), ElementsAre(2, 1, 2));
  EXPECT_THAT(batch.Find("none")->shape(), ElementsAre(2, 0));
}

TEST(Dataset, SaysItsStagesAndItsSize) {
  const Dataset rows = NumberedRows(10);
  EXPECT_EQ(rows.Shuffle({.seed = 1}).Shard(3, 0).Batch(3).Repeat().Prefetch().Describe(),
            "memory(10 rows).shuffle(seed=1).shard(0/3).batch(3).repeat.prefetch(4)");
  EXPECT_EQ(rows.size(), 10);
  EXPECT_EQ(rows.Shard(3, 0).size(), 4);
  EXPECT_EQ(rows.Shard(3, 2).size(), 3);
  EXPECT_EQ(rows.Batch(3).size(), 4);
  EXPECT_EQ(rows.Batch(3, true).size(), 3);
  EXPECT_EQ(rows.Skip(2).Take(5).Repeat(2).size(), 10);
  EXPECT_EQ(rows.Skip(20).size(), 0);
  EXPECT_EQ(rows.Repeat().size(), std::nullopt);
  EXPECT_EQ(rows.Batch(0).size(), std::nullopt);
  EXPECT_EQ(StreamedNumbers(10).size(), std::nullopt);
  EXPECT_EQ(Dataset::Interleave({rows, rows}).size(), 20);
}

TEST(Dataset, RefusesWhatCanNeverBeRight) {
  const Dataset rows = NumberedRows(5);
  EXPECT_EQ(OpenError(rows.Batch(0)), "batch: a size of 0; accepted: 1 or more (in memory(5 rows).batch(0))");
  EXPECT_TRUE(IsWrongConfiguration(rows.Batch(0).Open().status()));
  EXPECT_THAT(OpenError(rows.Repeat(-1).Batch(0)), HasSubstr("repeat: -1 epochs")) << "the first mistake";
  EXPECT_THAT(OpenError(rows.Shard(2, 2)), HasSubstr("shard: shard 2 of 2"));
  EXPECT_THAT(OpenError(rows.Shard(0, 0)), HasSubstr("shard 0 of 0"));
  EXPECT_THAT(OpenError(rows.Shard(6, 5)), HasSubstr("shard 5 of 6 has no rows: there are 5"));
  EXPECT_THAT(OpenError(rows.Batch(6, /*drop_remainder=*/true)), HasSubstr("no full batch of 6 can be made of 5 rows"));
  EXPECT_THAT(OpenError(rows.Take(-1)), HasSubstr("take: -1 elements"));
  EXPECT_THAT(OpenError(rows.Skip(-1)), HasSubstr("skip: -1 elements"));
  EXPECT_THAT(OpenError(rows.Map(nullptr)), HasSubstr("map: no function"));
  EXPECT_THAT(OpenError(rows.Map([](Example&) { return absl::OkStatus(); }, {.threads = 0})), HasSubstr("0 threads"));
  EXPECT_THAT(OpenError(rows.Repeat().Shuffle()), HasSubstr("shuffle: all examples of an endless input"));
  EXPECT_EQ(rows.Repeat().Take(9).Shuffle().Open().status(), absl::OkStatus());
  EXPECT_EQ(rows.Repeat().Shuffle({.buffer_size = 3}).Open().status(), absl::OkStatus());
  EXPECT_THAT(OpenError(Dataset::Interleave({rows, rows.Repeat()}).Cache()), HasSubstr("cache: an endless input"));
  EXPECT_THAT(OpenError(Dataset::FromRows(nullptr)), HasSubstr("null"));
  EXPECT_THAT(OpenError(Dataset::FromStream("s", nullptr)), HasSubstr("no function"));
  EXPECT_THAT(OpenError(Dataset::Interleave({})), HasSubstr("interleave: no sources"));
  EXPECT_THAT(OpenError(Dataset::Interleave({rows}, {.cycle_length = 0})), HasSubstr("a cycle of 0"));
  EXPECT_THAT(OpenError(Dataset::Interleave({rows}, {.block_length = 0})), HasSubstr("blocks of 0"));
  EXPECT_THAT(OpenError(Dataset::Interleave({rows, rows.Batch(0)})), HasSubstr("batch: a size of 0"));
}

TEST(Dataset, RefusesArraysThatAreNoRows) {
  EXPECT_THAT(OpenError(Dataset::FromMemory({})), HasSubstr("neither features nor labels"));
  Example twice;
  twice.features.push_back({"x", Array::Of<float>({1}, {1})});
  twice.features.push_back({"x", Array::Of<float>({1}, {1})});
  EXPECT_THAT(OpenError(Dataset::FromMemory(twice)), HasSubstr("two features 'x'"));
  Example uneven{.labels = Array::Of<int64_t>({2}, {1, 2}), .has_labels = true};
  uneven.features.push_back({"x", Array::Of<float>({3, 1}, {1, 2, 3})});
  EXPECT_THAT(OpenError(Dataset::FromMemory(uneven)), HasSubstr("must agree: x [3, 1], the labels [2]"));
  Example scalar;
  scalar.features.push_back({"x", Array::Scalar(1.0F)});
  EXPECT_THAT(OpenError(Dataset::FromMemory(scalar)), HasSubstr("must agree: x []"));
}

}  // namespace
}  // namespace muster::dataset_test
