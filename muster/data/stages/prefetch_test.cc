// Prefetch: a thread prepares elements.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "muster/base/mutex.h"
#include "muster/data/dataset/dataset.h"
#include "muster/data/testing/numbered_examples.h"

namespace muster::prefetch_test {
namespace {

TEST(Prefetch, HandsOutEverythingInOrderThenTheEnd) {
  for (const size_t depth : {0, 1, 3}) {
    EXPECT_EQ(DrawAll(NumberedRows(500).Prefetch(depth)), DrawAll(NumberedRows(500))) << depth;
  }
}

TEST(Prefetch, PassesTheErrorOnBehindTheElementsBeforeIt) {
  auto stream = OpenOrFail(StreamedNumbers(2, absl::DataLossError("row 3 is damaged")).Prefetch());
  Example element;
  EXPECT_TRUE(*stream->Next(element));
  EXPECT_TRUE(*stream->Next(element));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(stream->Next(element).status(), absl::DataLossError("row 3 is damaged"));
}

// Counts the elements made.
class Progress {
 public:
  void Made() {
    MutexLock lock(mutex_);
    ++made_;
    changed_.NotifyAll();
  }
  void Await(int count) {
    MutexLock lock(mutex_);
    while (made_ < count) changed_.Wait(mutex_);
  }
  int made() {
    MutexLock lock(mutex_);
    return made_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int made_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(Prefetch, AFullQueueHoldsTheThreadBackAndStopEndsIt) {
  Progress progress;
  auto stream = OpenOrFail(NumberedRows(1000)
                               .Map([&progress](Example&) {
                                 progress.Made();
                                 return absl::OkStatus();
                               })
                               .Repeat()
                               .Prefetch(2));
  EXPECT_EQ(progress.made(), 0) << "the thread begins with the first Next";
  Draw(*stream, 1);
  progress.Await(3);
  stream->Stop();
  EXPECT_EQ(progress.made(), 3) << "one was handed out, two are ready";
}

// A source that blocks until it is stopped.
class BlockedStream final : public ExampleStream {
 public:
  explicit BlockedStream(Progress& waiting) : waiting_(waiting) {}
  absl::StatusOr<bool> Next(Example&) override {
    waiting_.Made();
    MutexLock lock(mutex_);
    while (!stopped_) changed_.Wait(mutex_);
    return absl::CancelledError("stopped");
  }
  std::string SavePosition() const override { return ""; }
  absl::Status RestorePosition(const std::string&) override { return absl::OkStatus(); }
  void Stop() override {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

 private:
  Progress& waiting_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(Prefetch, StopFromAnotherThreadWakesWhoWaits) {
  for (const size_t depth : {0, 2}) {
    Progress waiting;
    auto stream = OpenOrFail(
        Dataset::FromStream(
            "blocked", [&waiting] { return std::unique_ptr<ExampleStream>(std::make_unique<BlockedStream>(waiting)); })
            .Map([](Example&) { return absl::OkStatus(); }, {.threads = depth > 0 ? 2 : 1})
            .Shuffle()
            .Batch(2)
            .Repeat()
            .Prefetch(depth));
    std::thread stopper([&] {
      waiting.Await(1);
      stream->Stop();
    });
    Example element;
    EXPECT_TRUE(absl::IsCancelled(stream->Next(element).status()));
    EXPECT_TRUE(absl::IsCancelled(stream->Next(element).status()));
    stopper.join();
  }
}

TEST(Prefetch, WhatASourceThrowsIsAnErrorBehindTheElementsBeforeIt) {
  class ThrowingStream final : public NumberedStream {
   public:
    ThrowingStream() : NumberedStream(2) {}
    absl::StatusOr<bool> Next(Example& into) override {
      if (drawn_++ == 2) throw std::runtime_error("no luck");
      return NumberedStream::Next(into);
    }

   private:
    int drawn_ = 0;
  };
  auto stream = OpenOrFail(Dataset::FromStream("throwing", [] {
                             return std::unique_ptr<ExampleStream>(std::make_unique<ThrowingStream>());
                           }).Prefetch());
  EXPECT_EQ(Draw(*stream, 2).size(), 2U);
  Example element;
  EXPECT_EQ(stream->Next(element).status().message(), "the input threw: no luck");
}

TEST(Prefetch, MayBeAnywhereAndMoreThanOnce) {
  const Dataset rows = NumberedRows(23).Shuffle({.seed = 3});
  EXPECT_EQ(DrawAll(rows.Prefetch(2).Batch(4).Prefetch(1).Repeat(3).Prefetch(3)), DrawAll(rows.Batch(4).Repeat(3)));
}

TEST(Prefetch, AStreamThatNobodyDrawsFromEndsQuietly) {
  OpenOrFail(NumberedRows(5).Prefetch());
  auto stream = OpenOrFail(NumberedRows(5).Repeat().Prefetch());
  Draw(*stream, 1);  // and is then destroyed
}

}  // namespace
}  // namespace muster::prefetch_test
