#include "muster/summary/value_histogram.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace muster::value_histogram_test {
namespace {

using ::testing::DoubleEq, ::testing::ElementsAre;

TEST(ValueHistogramTest, EachValueLiesInABucketATenthWide) {
  HistogramBuilder histogram;
  const std::vector<float> values = {-3, 0, 0, 1e-3F, 0.5F, 0.51F, 250};
  histogram.Add(std::span<const float>(values));
  const ValueHistogram summary = histogram.Build();
  ASSERT_EQ(summary.bucket_limit.size(), summary.bucket.size());
  double before = -std::numeric_limits<double>::max();
  size_t at = 0;
  for (size_t i = 0; i < summary.bucket_limit.size(); ++i) {
    EXPECT_GT(summary.bucket_limit[i], i == 0 ? before : summary.bucket_limit[i - 1]);
    for (int n = 0; n < static_cast<int>(summary.bucket[i]); ++n, ++at) {
      EXPECT_LT(values[at], summary.bucket_limit[i]) << "the values are sorted, and so are the buckets";
      EXPECT_GE(values[at], summary.bucket_limit[i - 1]);
      if (values[at] != 0) {
        EXPECT_NEAR(std::abs(summary.bucket_limit[i] / summary.bucket_limit[i - 1]), values[at] > 0 ? 1.1 : 1 / 1.1,
                    1e-9);
      }
    }
  }
  EXPECT_EQ(at, values.size());
  EXPECT_EQ(summary.num, 7);
  EXPECT_EQ(summary.min, -3);
  EXPECT_EQ(summary.max, 250);
  EXPECT_NEAR(summary.sum, 248.011, 1e-4);
  EXPECT_NEAR(summary.sum_squares, 9 + 1e-6 + 0.25 + 0.2601 + 62500, 1e-3);
}

// TensorFlow's EncodeToProto gives the same for 1, 1 and -1.
TEST(ValueHistogramTest, RunsOfEmptyBucketsAreOne) {
  HistogramBuilder histogram;
  const double values[] = {1, 1, -1};
  histogram.Add(values);
  const ValueHistogram summary = histogram.Build();
  EXPECT_THAT(summary.bucket, ElementsAre(0, 1, 0, 2, 0));
  double limit = 1e-12;
  while (limit * 1.1 <= 1) limit *= 1.1;
  EXPECT_THAT(summary.bucket_limit, ElementsAre(DoubleEq(-limit * 1.1), DoubleEq(-limit), DoubleEq(limit),
                                                DoubleEq(limit * 1.1), std::numeric_limits<double>::max()));
}

TEST(ValueHistogramTest, WhatIsNoNumberIsCountedApart) {
  HistogramBuilder histogram;
  const double values[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::max(), 2};
  histogram.Add(values);
  EXPECT_EQ(histogram.not_finite(), 3);
  const ValueHistogram summary = histogram.Build();
  EXPECT_EQ(std::accumulate(summary.bucket.begin(), summary.bucket.end(), 0.0), 2);
}

TEST(ValueHistogramTest, WithoutValuesThereIsOneEmptyBucket) {
  const ValueHistogram summary = HistogramBuilder().Build();
  EXPECT_THAT(summary.bucket, ElementsAre(0));
  EXPECT_EQ(summary.min, 0);
  EXPECT_EQ(summary.max, 0);
}

}  // namespace
}  // namespace muster::value_histogram_test
