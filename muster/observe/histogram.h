// Counts values in buckets with fixed bounds, without a lock. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

// A histogram's contents at one moment (per bucket: other threads may be adding).
struct HistogramSnapshot {
  std::vector<double> bounds;    // ascending; bucket i holds values v with bounds[i-1] < v <= bounds[i]
  std::vector<uint64_t> counts;  // one more than bounds: the last counts values above all bounds
  uint64_t count = 0;
  double sum = 0;

  // Returns the value below or at which the share `q` (0..1) of all values lies, interpolated within its bucket; 0
  // without values. Values above the last bound count as that bound.
  double Quantile(double q) const;
  // Returns the same values in every `keep`-th bucket, keeping the last bound.
  HistogramSnapshot Coarser(size_t keep) const;
};

class Histogram {
 public:
  // `bounds` must be ascending and not empty.
  explicit Histogram(std::vector<double> bounds);
  // Returns `buckets` bounds: the first is `first`, and each next one is `factor` times the one before.
  static std::vector<double> ExponentialBounds(double first, double factor, size_t buckets);

  void Add(double value);
  HistogramSnapshot Snapshot() const;

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

}  // namespace muster
