#include "muster/summary/value_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster {
namespace {

std::vector<double> MakeLimits() {
  std::vector<double> positive = {1e-12};
  while (positive.back() * 1.1 < 1e20) positive.push_back(positive.back() * 1.1);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

const std::vector<double>& Limits() {
  static const std::vector<double> limits = MakeLimits();
  return limits;
}

}  // namespace

HistogramBuilder::HistogramBuilder() : counts_(Limits().size()) {}

void HistogramBuilder::AddOne(double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  const std::vector<double>& limits = Limits();
  // The largest representable number has no limit above it.
  const auto bucket = std::min<size_t>(
      static_cast<size_t>(std::upper_bound(limits.begin(), limits.end(), value) - limits.begin()), limits.size() - 1);
  ++counts_[bucket];
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  ++num_;
  sum_ += value;
  sum_squares_ += value * value;
}

void HistogramBuilder::Add(std::span<const float> values) {
  for (const float value : values) AddOne(value);
}

void HistogramBuilder::Add(std::span<const double> values) {
  for (const double value : values) AddOne(value);
}

ValueHistogram HistogramBuilder::Build() const {
  ValueHistogram summary{.min = min_, .max = max_, .num = num_, .sum = sum_, .sum_squares = sum_squares_};
  if (num_ == 0) {
    summary.min = summary.max = 0;
    summary.bucket_limit = {std::numeric_limits<double>::max()};
    summary.bucket = {0};
    return summary;
  }
  const std::vector<double>& limits = Limits();
  for (size_t i = 0; i < limits.size(); ++i) {
    const double count = counts_[i];
    while (count == 0 && i + 1 < limits.size() && counts_[i + 1] == 0) ++i;
    summary.bucket_limit.push_back(limits[i]);
    summary.bucket.push_back(count);
  }
  return summary;
}

}  // namespace muster
