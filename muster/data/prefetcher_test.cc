#include "muster/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "muster/data/batcher.h"

namespace muster::prefetcher_test {
namespace {

// Makes `count` batches labelled 0, 1, ..., then ends with `end`. Counts what it has made.
class CountingSource final : public BatchSource {
 public:
  struct Progress {
    Mutex mutex;
    CondVar changed;
    int made ABSL_GUARDED_BY(mutex) = 0;
  };

  CountingSource(int count, absl::StatusOr<bool> end, Progress* progress = nullptr)
      : count_(count), end_(std::move(end)), progress_(progress) {}

  absl::StatusOr<bool> Next(Batch& into) override {
    if (next_ == count_) return end_;
    into.labels.assign(1, next_++);
    if (progress_ != nullptr) {
      MutexLock lock(progress_->mutex);
      progress_->made = next_;
      progress_->changed.NotifyAll();
    }
    return true;
  }

 private:
  const int count_;
  const absl::StatusOr<bool> end_;
  Progress* const progress_;  // outlives the test's prefetcher
  int next_ = 0;
};

TEST(Prefetcher, HandsOutAllBatchesInOrderThenTheEnd) {
  Prefetcher prefetcher(std::make_unique<CountingSource>(1000, false), {.depth = 3});
  prefetcher.Start();
  Batch batch;
  for (int i = 0; i < 1000; ++i) {
    const auto got = prefetcher.Next(batch);
    ASSERT_TRUE(got.ok() && *got);
    EXPECT_EQ(batch.labels.at(0), i);
  }
  EXPECT_FALSE(*prefetcher.Next(batch));
  EXPECT_FALSE(*prefetcher.Next(batch));
  prefetcher.Stop();
}

TEST(Prefetcher, PassesTheErrorOnAfterTheBatchesBeforeIt) {
  Prefetcher prefetcher(std::make_unique<CountingSource>(2, absl::DataLossError("row 3 is damaged")));
  prefetcher.Start();
  Batch batch;
  EXPECT_TRUE(*prefetcher.Next(batch));
  EXPECT_TRUE(*prefetcher.Next(batch));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(prefetcher.Next(batch).status(), absl::DataLossError("row 3 is damaged"));
  prefetcher.Stop();
}

TEST(Prefetcher, StopEndsAProducerWithAFullQueue) {
  CountingSource::Progress progress;
  Prefetcher prefetcher(std::make_unique<CountingSource>(1000000, false, &progress), {.depth = 2});
  prefetcher.Start();
  {
    MutexLock lock(progress.mutex);
    while (progress.made < 2) progress.changed.Wait(progress.mutex);
  }
  prefetcher.Stop();
  prefetcher.Stop();
  Batch batch;
  EXPECT_EQ(prefetcher.Next(batch).status().code(), absl::StatusCode::kCancelled);
  MutexLock lock(progress.mutex);
  EXPECT_LE(progress.made, 2);  // a full queue holds the producer back
}

// A source that waits until it is let go, so that a consumer surely waits for it.
class BlockedSource final : public BatchSource {
 public:
  absl::StatusOr<bool> Next(Batch&) override {
    MutexLock lock(mutex_);
    while (!released_) changed_.Wait(mutex_);
    return false;
  }
  void Release() {
    MutexLock lock(mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(Prefetcher, StopWakesAConsumerThatWaits) {
  auto source = std::make_unique<BlockedSource>();
  BlockedSource* blocked = source.get();
  Prefetcher prefetcher(std::move(source));
  prefetcher.Start();
  std::thread consumer([&] {
    Batch batch;
    const auto got = prefetcher.Next(batch);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled);
    blocked->Release();  // only now can the producer, and with it Stop, end: the consumer was woken before it
  });
  prefetcher.Stop();
  consumer.join();
}

TEST(Prefetcher, NeedsToBeStarted) {
  Prefetcher prefetcher(std::make_unique<CountingSource>(1, false));
  Batch batch;
  EXPECT_EQ(prefetcher.Next(batch).status().code(), absl::StatusCode::kFailedPrecondition);
  prefetcher.Stop();
}

TEST(Prefetcher, TakesABatcher) {
  const LabelledRows data = *LabelledRows::Create(1, {1, 2, 3}, {1, 2, 3});
  auto batcher = Batcher::Create(data, {.batch_size = 2, .shuffle = false, .epochs = 1});
  Prefetcher prefetcher(std::make_unique<Batcher>(*std::move(batcher)));
  prefetcher.Start();
  Batch batch;
  ASSERT_TRUE(*prefetcher.Next(batch));
  EXPECT_THAT(batch.labels, testing::ElementsAre(1, 2));
  EXPECT_EQ(batch.next, (DataPosition{0, 2}));
  prefetcher.Stop();
}

}  // namespace
}  // namespace muster::prefetcher_test
