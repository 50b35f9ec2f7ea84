// Many values as a histogram that TensorBoard shows: the buckets of TensorFlow (core/lib/histogram/histogram.cc), whose
// limits grow by a tenth from 1e-12 to 1e20, to both sides of zero. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace muster {

// As TensorFlow's HistogramProto: bucket[i] is how many values are below bucket_limit[i] and not below bucket_limit[i -
// 1].
struct ValueHistogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limit;  // rising
  std::vector<double> bucket;        // as many
};

class HistogramBuilder {
 public:
  HistogramBuilder();

  void Add(std::span<const float> values);
  void Add(std::span<const double> values);

  // Values that are NaN or infinite are counted here and nowhere else. (TensorFlow's summary of such values is an
  // error.)
  int64_t not_finite() const { return not_finite_; }

  // Runs of empty buckets are one. Without values: one empty bucket.
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
