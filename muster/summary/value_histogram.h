// Builds a histogram for TensorBoard from many values. The buckets are TensorFlow's (core/lib/histogram/histogram.cc):
// their limits grow by a tenth from 1e-12 to 1e20, on both sides of zero. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace muster {

// TensorFlow's HistogramProto: bucket[i] counts the values v with bucket_limit[i - 1] <= v < bucket_limit[i].
struct ValueHistogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limit;  // ascending
  std::vector<double> bucket;        // as many as bucket_limit
};

class HistogramBuilder {
 public:
  HistogramBuilder();

  void Add(std::span<const float> values);
  void Add(std::span<const double> values);

  // The number of NaN and infinite values, which are counted only here. (In TensorFlow such values are an error.)
  int64_t not_finite() const { return not_finite_; }

  // Merges runs of empty buckets into one. Without values: one empty bucket.
  ValueHistogram Build() const;

 private:
  void AddOne(double value);

  std::vector<double> counts_;
  double min_ = std::numeric_limits<double>::max();
  double max_ = std::numeric_limits<double>::lowest();
  double num_ = 0;
  double sum_ = 0;
  double sum_squares_ = 0;
  int64_t not_finite_ = 0;
};

}  // namespace muster
