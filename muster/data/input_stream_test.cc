#include "muster/data/input_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace muster::input_stream_test {
namespace {

// `rows` rows, each labelled with its number.
LabelledRows Rows(size_t rows) {
  std::vector<int64_t> labels(rows);
  std::iota(labels.begin(), labels.end(), int64_t{0});
  return *LabelledRows::Create(1, std::vector<float>(labels.begin(), labels.end()), labels);
}

std::unique_ptr<InputStream> Make(const LabelledRows& data, const InputStreamOptions& options) {
  auto stream = InputStream::Create(data, options);
  EXPECT_TRUE(stream.ok()) << stream.status();
  return *std::move(stream);
}

std::vector<std::vector<int64_t>> Draw(InputStream& stream, size_t count) {
  std::vector<std::vector<int64_t>> batches;
  Batch batch;
  while (batches.size() < count) {
    const auto got = stream.Next(batch);
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok() || !*got) break;
    batches.push_back(batch.labels);
  }
  return batches;
}

constexpr size_t kBatches = 14;  // of 23 rows in 2 shards, 12 and 11, in fours: three an epoch

TEST(InputStreamTest, ARestoredOneGivesTheBatchesThatWouldHaveCome) {
  const LabelledRows data = Rows(23);
  for (const size_t prefetch : {0, 1, 5}) {
    for (const bool drop_remainder : {false, true}) {
      const InputStreamOptions options = {
          .batches = {.batch_size = 4, .seed = 9, .shard = 1, .shards = 2, .drop_remainder = drop_remainder},
          .prefetch = prefetch};
      auto whole = Make(data, options);
      const auto expected = Draw(*whole, kBatches);
      whole->Stop();
      for (size_t before = 0; before <= kBatches; ++before) {
        SCOPED_TRACE(before);
        auto first = Make(data, options);
        auto drawn = Draw(*first, before);
        const std::string saved = first->SavePosition();
        first->Stop();
        auto second = Make(data, options);
        ASSERT_EQ(second->RestorePosition(saved), absl::OkStatus());
        EXPECT_EQ(second->SavePosition(), saved) << "a session saves as soon as it has restored";
        for (auto& batch : Draw(*second, kBatches - before)) drawn.push_back(batch);
        EXPECT_EQ(drawn, expected);
        second->Stop();
      }
    }
  }
}

TEST(InputStreamTest, AnotherBatchSizeGoesOnWithTheNextRow) {
  const LabelledRows data = Rows(10);
  auto first = Make(data, {.batches = {.batch_size = 3, .shuffle = false}, .prefetch = 0});
  Draw(*first, 2);
  auto second = Make(data, {.batches = {.batch_size = 2, .shuffle = false}, .prefetch = 0});
  ASSERT_EQ(second->RestorePosition(first->SavePosition()), absl::OkStatus());
  EXPECT_EQ(Draw(*second, 1), (std::vector<std::vector<int64_t>>{{6, 7}}));
}

TEST(InputStreamTest, AnotherOrderBeginsTheEpochAnew) {
  const LabelledRows data = Rows(10);
  const LabelledRows larger = Rows(11);
  const BatcherOptions options = {.batch_size = 3, .seed = 1, .shard = 1, .shards = 2};
  auto first = Make(data, {.batches = options, .prefetch = 0});
  Draw(*first, 3);  // two are an epoch
  ASSERT_EQ(first->position(), (DataPosition{1, 3}));
  const auto restored = [&](const LabelledRows& other, const BatcherOptions& changed) {
    auto second = Make(other, {.batches = changed, .prefetch = 0});
    EXPECT_EQ(second->RestorePosition(first->SavePosition()), absl::OkStatus());
    return second->position();
  };
  EXPECT_EQ(restored(data, options), (DataPosition{1, 3}));
  EXPECT_EQ(restored(larger, options), (DataPosition{1, 0}));
  BatcherOptions other = options;
  other.seed = 2;
  EXPECT_EQ(restored(data, other), (DataPosition{1, 0}));
  other = options;
  other.shards = 3;
  EXPECT_EQ(restored(data, other), (DataPosition{1, 0}));
  other = options;
  other.shard = 0;
  EXPECT_EQ(restored(data, other), (DataPosition{1, 0}));
  other = options;
  other.shuffle = false;
  EXPECT_EQ(restored(data, other), (DataPosition{1, 0}));
}

TEST(InputStreamTest, WhatIsNoPositionIsRefused) {
  const LabelledRows data = Rows(10);
  auto stream = Make(data, {.batches = {.batch_size = 3}, .prefetch = 0});
  const std::string good = stream->SavePosition();
  for (const std::string bad : {"", "x", "epoch=1", "epoch=1 offset=x", "epoch=-1 offset=0", "epoch=1 offset=2 more"}) {
    const absl::Status status = stream->RestorePosition(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad << ": " << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      stream->RestorePosition("epoch=0 offset=10" + good.substr(std::string("epoch=0 offset=0").size()))));
  ASSERT_EQ(stream->RestorePosition(good), absl::OkStatus());
  Draw(*stream, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(stream->RestorePosition(good)));
}

TEST(InputStreamTest, EndsWithTheDataAndRefusesWhatABatcherRefuses) {
  const LabelledRows data = Rows(5);
  auto stream = Make(data, {.batches = {.batch_size = 3, .epochs = 1}});
  EXPECT_EQ(Draw(*stream, 10).size(), 2u);
  stream->Stop();
  stream->Stop();
  EXPECT_TRUE(absl::IsInvalidArgument(InputStream::Create(data, {.batches = {.batch_size = 0}}).status()));
}

}  // namespace
}  // namespace muster::input_stream_test
