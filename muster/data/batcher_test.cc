#include "muster/data/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster::batcher_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Row i holds the features (i, -i) and the label i.
LabelledRows Rows(int count) {
  std::vector<float> features;
  std::vector<int64_t> labels;
  for (int i = 0; i < count; ++i) {
    features.insert(features.end(), {static_cast<float>(i), static_cast<float>(-i)});
    labels.push_back(i);
  }
  return *LabelledRows::Create(2, features, labels);
}

Batcher Make(const LabelledRows& data, const BatcherOptions& options) {
  auto batcher = Batcher::Create(data, options);
  EXPECT_TRUE(batcher.ok()) << batcher.status();
  return *std::move(batcher);
}

// Labels of the next `batches` batches (or all there are), batch by batch.
std::vector<std::vector<int64_t>> Draw(Batcher& batcher, int batches = 1000) {
  std::vector<std::vector<int64_t>> drawn;
  Batch batch;
  while (batches-- > 0 && *batcher.Next(batch)) {
    drawn.push_back(batch.labels);
    EXPECT_EQ(batch.features.size(), batch.labels.size() * 2);
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(batch.feature_span()[2 * i], batch.label_span()[i]);
      EXPECT_EQ(batch.feature_span()[2 * i + 1], -batch.label_span()[i]);
    }
  }
  return drawn;
}

std::vector<int64_t> Flat(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> flat;
  for (const auto& batch : batches) flat.insert(flat.end(), batch.begin(), batch.end());
  return flat;
}

TEST(Batcher, InOrderWithAShortLastBatch) {
  const LabelledRows data = Rows(5);
  Batcher batcher = Make(data, {.batch_size = 2, .shuffle = false, .epochs = 2});
  EXPECT_EQ(batcher.batches_per_epoch(), 3);
  EXPECT_THAT(Draw(batcher), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(0, 1),
                                         ElementsAre(2, 3), ElementsAre(4)));
}

TEST(Batcher, DropsTheRemainder) {
  const LabelledRows data = Rows(5);
  Batcher batcher = Make(data, {.batch_size = 2, .shuffle = false, .drop_remainder = true, .epochs = 1});
  EXPECT_EQ(batcher.batches_per_epoch(), 2);
  EXPECT_THAT(Draw(batcher), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(Batcher, EachEpochHoldsEveryRowInAnOrderOfItsOwn) {
  const LabelledRows data = Rows(100);
  Batcher batcher = Make(data, {.batch_size = 100, .seed = 7, .epochs = 2});
  auto epochs = Draw(batcher);
  ASSERT_EQ(epochs.size(), 2);
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, std::vector<int64_t>(data.labels().begin(), data.labels().end()));
  }
}

TEST(Batcher, ShardsDivideEachEpoch) {
  const LabelledRows data = Rows(10);
  std::vector<int64_t> all;
  size_t rows = 0;
  for (size_t shard = 0; shard < 3; ++shard) {
    Batcher batcher = Make(data, {.batch_size = 2, .shard = shard, .shards = 3, .epochs = 1});
    rows += batcher.rows_per_epoch();
    for (const int64_t label : Flat(Draw(batcher))) all.push_back(label);
  }
  EXPECT_EQ(rows, 10);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, std::vector<int64_t>(data.labels().begin(), data.labels().end()));
}

TEST(Batcher, GoesOnFromASavedPosition) {
  const LabelledRows data = Rows(23);
  const BatcherOptions options = {.batch_size = 4, .seed = 9, .shard = 1, .shards = 2, .epochs = 3};
  Batcher whole = Make(data, options);
  const auto expected = Draw(whole);
  for (size_t before = 0; before <= expected.size(); ++before) {
    Batcher first = Make(data, options);
    auto drawn = Draw(first, before);
    const DataPosition saved = first.position();
    Batcher second = Make(data, options);
    ASSERT_TRUE(second.Seek(saved).ok());
    EXPECT_EQ(second.position(), saved);
    for (auto& batch : Draw(second)) drawn.push_back(batch);
    EXPECT_EQ(drawn, expected) << "after " << before << " batches";
  }
}

TEST(Batcher, BatchSaysWhereToGoOn) {
  const LabelledRows data = Rows(5);
  Batcher batcher = Make(data, {.batch_size = 3, .shuffle = false});
  Batch batch;
  ASSERT_TRUE(*batcher.Next(batch));
  EXPECT_EQ(batch.next, (DataPosition{0, 3}));
  ASSERT_TRUE(*batcher.Next(batch));
  EXPECT_EQ(batch.next, (DataPosition{1, 0}));
}

TEST(Batcher, ReusesTheBatchsMemory) {
  const LabelledRows data = Rows(6);
  Batcher batcher = Make(data, {.batch_size = 3});
  Batch batch;
  ASSERT_TRUE(*batcher.Next(batch));
  const float* memory = batch.features.data();
  ASSERT_TRUE(*batcher.Next(batch));
  EXPECT_EQ(batch.features.data(), memory);
}

TEST(Batcher, RefusesWhatCanNeverMakeABatch) {
  const LabelledRows data = Rows(5);
  const auto error = [&](const BatcherOptions& options) {
    const auto batcher = Batcher::Create(data, options);
    EXPECT_EQ(batcher.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(batcher.status().message());
  };
  EXPECT_THAT(error({.batch_size = 0}), HasSubstr("batch size of 0"));
  EXPECT_THAT(error({.epochs = -1}), HasSubstr("-1 epochs"));
  EXPECT_THAT(error({.shard = 2, .shards = 2}), HasSubstr("shard 2 of 2"));
  EXPECT_THAT(error({.shard = 5, .shards = 6}), HasSubstr("shard 5 of 6 has no rows: the data set has 5"));
  EXPECT_THAT(error({.batch_size = 6, .drop_remainder = true}), HasSubstr("no full batch of 6"));
  EXPECT_FALSE(Batcher::Create(LabelledRows(), {}).ok());
}

TEST(Batcher, RefusesAPositionOfOtherData) {
  const LabelledRows data = Rows(5);
  Batcher batcher = Make(data, {});
  for (const DataPosition bad : {DataPosition{-1, 0}, DataPosition{0, -1}, DataPosition{0, 5}}) {
    EXPECT_EQ(batcher.Seek(bad).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(batcher.position(), DataPosition());
}

}  // namespace
}  // namespace muster::batcher_test
