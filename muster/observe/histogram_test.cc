#include "muster/observe/histogram.h"

#include <gmock/gmock.h>

#include <thread>

namespace muster::histogram_test {
namespace {

using ::testing::ElementsAre;

TEST(HistogramTest, AValueAtABoundIsInTheBucketBelowIt) {
  Histogram histogram({1, 2, 4});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 4.0, 4.1, 1e9}) histogram.Add(value);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_THAT(snapshot.counts, ElementsAre(2, 2, 1, 2));
  EXPECT_EQ(snapshot.count, 7);
  EXPECT_DOUBLE_EQ(snapshot.sum, 0.5 + 1 + 1.5 + 2 + 4 + 4.1 + 1e9);
}

TEST(HistogramTest, QuantilesAreWithinABucketOfTheTruth) {
  Histogram histogram(Histogram::ExponentialBounds(0.1, 1.12, 200));
  for (int i = 1; i <= 10000; ++i) histogram.Add(i);
  const HistogramSnapshot snapshot = histogram.Snapshot();
  EXPECT_NEAR(snapshot.Quantile(0.5), 5000, 5000 * 0.12);
  EXPECT_NEAR(snapshot.Quantile(0.99), 9900, 9900 * 0.12);
  EXPECT_NEAR(snapshot.Quantile(0), 1, 0.12);
  EXPECT_EQ(HistogramSnapshot{}.Quantile(0.5), 0);
}

TEST(HistogramTest, WhatIsAboveAllBoundsCountsAsTheLast) {
  Histogram histogram({1, 2});
  histogram.Add(100);
  EXPECT_EQ(histogram.Snapshot().Quantile(0.5), 2);
}

TEST(HistogramTest, FewerBucketsHoldTheSameValues) {
  Histogram histogram({1, 2, 3, 4, 5});
  for (const double value : {0.5, 1.5, 2.5, 3.5, 4.5, 5.5}) histogram.Add(value);
  const HistogramSnapshot coarse = histogram.Snapshot().Coarser(2);
  EXPECT_THAT(coarse.bounds, ElementsAre(2, 4, 5));
  EXPECT_THAT(coarse.counts, ElementsAre(2, 2, 1, 1));
}

TEST(HistogramTest, ThreadsAddAtOnce) {
  Histogram histogram({1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 10000; ++j) histogram.Add(0.5);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Snapshot().count, 40000);
  EXPECT_DOUBLE_EQ(histogram.Snapshot().sum, 20000);
}

}  // namespace
}  // namespace muster::histogram_test
