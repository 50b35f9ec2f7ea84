// Positions of pipelines: saved after any element and restored in a new stream.
#include <gtest/gtest.h>

#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::dataset_position_test {
namespace {

absl::Status Same(Example&) { return absl::OkStatus(); }

struct Pipeline {
  std::string name;
  Dataset dataset;
  size_t elements;  // how many are drawn
};

std::vector<Pipeline> Pipelines() {
  const Dataset memory = NumberedRows(23);
  const Dataset stream = StreamedNumbers(23);
  const Dataset shuffled = memory.Shuffle({.seed = 9}).Shard(2, 1);
  const Dataset buffered = stream.Shuffle({.seed = 9, .buffer_size = 5});
  const MapOptions threads{.threads = 3};
  return {
      {"Memory", memory, 23},
      {"Batches", shuffled.Batch(4).Repeat(), 14},
      {"BatchesWithoutRemainder", shuffled.Batch(4, true).Repeat(7), 14},
      {"Prefetched", shuffled.Batch(4).Repeat().Prefetch(5), 14},
      {"PrefetchedByOne", shuffled.Batch(4).Repeat(5).Prefetch(1), 15},
      {"PrefetchedBeforeRepeat", shuffled.Batch(4).Prefetch(2).Repeat(), 14},
      {"MappedByThreads", memory.Map(Same, threads).Shuffle({.seed = 2}).Batch(4).Repeat(), 14},
      {"BatchesOverTheEnd", shuffled.Repeat().Batch(4), 14},
      {"TakenOfRepeated", shuffled.Repeat(3).Skip(5).Take(20).Batch(3), 7},
      {"Streamed", stream, 23},
      {"StreamedShards", stream.Shard(3, 1).Batch(2).Repeat(), 14},
      {"StreamedTaken", stream.Skip(3).Take(9).Repeat(2), 18},
      {"Buffered", buffered.Batch(4).Repeat(), 14},
      {"BufferedWhole", stream.Shuffle({.seed = 9}).Batch(4).Repeat(), 14},
      {"BufferedRepeated", stream.Repeat(3).Shuffle({.seed = 1, .buffer_size = 7}).Batch(4), 18},
      {"StreamedMapped", stream.Map(Same, threads).Batch(4).Repeat(2).Prefetch(2), 12},
      {"Cached", stream.Map(Same).Cache().Batch(4).Repeat(), 14},
      {"CachedRows", memory.Map(Same).Cache().Shuffle({.seed = 1}).Batch(4).Repeat(), 14},
      {"RepeatedTwice", shuffled.Repeat(2).Repeat(2).Batch(4), 11},
      {"Interleaved",
       Dataset::Interleave({memory.Take(5), stream.Take(7), memory.Take(3).Repeat(2)},
                           {.cycle_length = 2, .block_length = 2})
           .Batch(2)
           .Repeat(),
       20},
  };
}

class PositionTest : public testing::TestWithParam<Pipeline> {};
INSTANTIATE_TEST_SUITE_P(Pipelines, PositionTest, testing::ValuesIn(Pipelines()),
                         [](const auto& pipeline) { return pipeline.param.name; });

TEST_P(PositionTest, ARestoredStreamGivesWhatWouldHaveCome) {
  const auto& [name, dataset, elements] = GetParam();
  const DrawnLabels expected = DrawAll(dataset, elements);
  ASSERT_EQ(expected.size(), elements);
  for (size_t before = 0; before <= elements; ++before) {
    SCOPED_TRACE(before);
    auto first = OpenOrFail(dataset);
    DrawnLabels drawn = Draw(*first, before);
    const std::string saved = first->SavePosition();
    first->Stop();
    auto second = OpenOrFail(dataset);
    ASSERT_EQ(second->RestorePosition(saved), absl::OkStatus()) << saved;
    EXPECT_EQ(second->SavePosition(), saved) << "a session saves as soon as it has restored";
    for (auto& labels : Draw(*second, elements - before)) drawn.push_back(labels);
    EXPECT_EQ(drawn, expected) << saved;
  }
}

// Returns the first element of a stream of `dataset` restored from `saved`.
std::vector<int64_t> FirstAfter(const std::string& saved, const Dataset& dataset) {
  auto stream = OpenOrFail(dataset);
  EXPECT_EQ(stream->RestorePosition(saved), absl::OkStatus());
  const DrawnLabels drawn = Draw(*stream, 1);
  return drawn.empty() ? std::vector<int64_t>() : drawn[0];
}

std::string SavedAfter(size_t elements, const Dataset& dataset) {
  auto stream = OpenOrFail(dataset);
  Draw(*stream, elements);
  return stream->SavePosition();
}

TEST(Positions, SayWhatTheyDependOn) {
  EXPECT_EQ(SavedAfter(4, NumberedRows(10).Shuffle({.seed = 1}).Shard(2, 1).Batch(2).Repeat().Prefetch()),
            "elements=4 epoch=1 at=1,2 of memory(10 rows).shuffle(seed=1).shard(1/2).batch(2).repeat");
}

TEST(Positions, AnotherPipelineBeginsTheSavedEpochAnew) {
  const auto pipeline = [](int64_t rows, uint64_t seed, size_t shards, size_t shard, size_t batch) {
    return NumberedRows(rows).Shuffle({.seed = seed}).Shard(shards, shard).Batch(batch).Repeat();
  };
  const std::string saved = SavedAfter(3, pipeline(10, 1, 2, 1, 3));  // two are an epoch
  EXPECT_EQ(FirstAfter(saved, pipeline(10, 1, 2, 1, 3)), DrawAll(pipeline(10, 1, 2, 1, 3), 4)[3]);
  // The first epoch of `other` has `epoch` batches.
  const auto begins_second_epoch = [&](const Dataset& other, size_t epoch) {
    EXPECT_EQ(FirstAfter(saved, other), DrawAll(other, epoch + 1)[epoch]) << other.Describe();
  };
  begins_second_epoch(pipeline(11, 1, 2, 1, 3), 2);
  begins_second_epoch(pipeline(10, 2, 2, 1, 3), 2);
  begins_second_epoch(pipeline(10, 1, 3, 1, 3), 1);
  begins_second_epoch(pipeline(10, 1, 2, 0, 3), 2);
  begins_second_epoch(pipeline(10, 1, 2, 1, 2), 3);
  begins_second_epoch(NumberedRows(10).Shard(2, 1).Batch(3).Repeat(), 2);
  begins_second_epoch(StreamedNumbers(10).Shuffle({.seed = 1}).Shard(2, 1).Batch(3).Repeat(), 2);
  begins_second_epoch(NumberedRows(6).Repeat().Shuffle({.seed = 4, .buffer_size = 1}), 6);
  EXPECT_EQ(FirstAfter(saved, NumberedRows(6).Repeat().Skip(2)), std::vector<int64_t>{0}) << "the first epoch's were";
  EXPECT_TRUE(FirstAfter(saved, pipeline(10, 1, 2, 1, 3).Take(0)).empty());
  EXPECT_TRUE(FirstAfter(saved, NumberedRows(10).Repeat(1)).empty()) << "epoch 1 isn't there";
}

TEST(Positions, AStreamThatBeganAnEpochAnewCanBeSavedAndRestored) {
  const std::string saved = SavedAfter(7, NumberedRows(4).Repeat());
  for (const Dataset& other : {NumberedRows(5).Repeat().Shuffle({.seed = 1, .buffer_size = 3}),
                               StreamedNumbers(5).Repeat().Skip(2).Shard(2, 1), NumberedRows(5).Repeat().Batch(2)}) {
    auto first = OpenOrFail(other);
    ASSERT_EQ(first->RestorePosition(saved), absl::OkStatus());
    Draw(*first, 3);
    const std::string again = first->SavePosition();
    const DrawnLabels expected = Draw(*first, 5);
    auto second = OpenOrFail(other);
    ASSERT_EQ(second->RestorePosition(again), absl::OkStatus());
    EXPECT_EQ(Draw(*second, 5), expected) << again;
  }
}

TEST(Positions, PrefetchAndThreadsDontMakeAnotherPipeline) {
  const Dataset rows = NumberedRows(10);
  const std::string saved = SavedAfter(3, rows.Map(Same).Batch(2).Repeat());
  EXPECT_EQ(SavedAfter(3, rows.Map(Same, {.threads = 2}).Batch(2).Prefetch(3).Repeat().Prefetch()), saved);
}

TEST(Positions, FewerElementsThanWereHandedOutBeginTheEpochAnew) {
  const auto source = [](int64_t rows) {
    return Dataset::FromStream(
        "a file", [rows] { return std::unique_ptr<ExampleStream>(std::make_unique<NumberedStream>(rows)); });
  };
  const std::string saved = SavedAfter(7, source(10));
  EXPECT_EQ(FirstAfter(saved, source(9)), std::vector<int64_t>{7});
  EXPECT_EQ(FirstAfter(saved, source(5)), std::vector<int64_t>{0});
  EXPECT_EQ(FirstAfter(saved, source(5).Prefetch()), std::vector<int64_t>{0});
}

TEST(Positions, RestoringAnIndexedSourceReadsNothing) {
  int made = 0;
  const Dataset counted = NumberedRows(100).Map([&made](Example&) {
    ++made;
    return absl::OkStatus();
  });
  const Dataset batches = counted.Shuffle({.seed = 1}).Batch(10).Repeat();
  const std::string saved = SavedAfter(57, batches);
  made = 0;
  FirstAfter(saved, batches);
  EXPECT_EQ(made, 10);
}

TEST(Positions, RestoringAStreamReadsOneEpochAtMost) {
  int opened = 0;
  const Dataset batches = StreamedNumbers(20, false, &opened).Shuffle({.buffer_size = 4}).Batch(5).Repeat();
  const std::string saved = SavedAfter(4 * 50 + 3, batches);
  opened = 0;
  FirstAfter(saved, batches);
  EXPECT_LE(opened, 2);
}

TEST(Positions, ThatOfABatcherIsAnotherPipelines) {
  const Dataset rows = NumberedRows(10).Shuffle({.seed = 1}).Batch(5).Repeat();
  EXPECT_EQ(FirstAfter("epoch=2 offset=5 of rows=10 shard=0/1 seed=1", rows), DrawAll(rows, 5)[4]);
}

TEST(Positions, WhatIsNoneIsRefused) {
  const Dataset rows = NumberedRows(10).Shuffle({.seed = 1}).Batch(3).Repeat();
  const std::string of = " of memory(10 rows).shuffle(seed=1).batch(3).repeat";
  auto stream = OpenOrFail(rows);
  const std::string good = stream->SavePosition();
  ASSERT_EQ(good, "elements=0 epoch=0 at=0,0" + of);
  const std::vector<std::string> bad = {"",
                                        "x",
                                        "epoch=1",
                                        "epoch=1 offset=2",
                                        "elements=1 epoch=1 at=1,1",
                                        "epoch=1 offset=x" + of,
                                        "epoch=-1 offset=0" + of,
                                        "elements=-1 epoch=0 at=0,0" + of,
                                        "elements=0 epoch=0 at=0,x" + of,
                                        "elements=0 epoch=0 at=0,-1" + of,
                                        "elements=0 epoch=0 at=0" + of,
                                        "elements=0 epoch=0 at=0,0,0" + of,
                                        "elements=0 epoch=0 at=0,0 more" + of};
  for (const std::string& text : bad) {
    const absl::Status status = stream->RestorePosition(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
  }
  ASSERT_EQ(stream->RestorePosition(good), absl::OkStatus());
  EXPECT_EQ(Draw(*stream, 2), DrawAll(rows, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(stream->RestorePosition(good)));
}

}  // namespace
}  // namespace muster::dataset_position_test
