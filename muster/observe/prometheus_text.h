// Writes metrics for Prometheus: the text exposition format, version 0.0.4. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/observe/histogram.h"

namespace muster {

// The Content-Type of this format version.
inline constexpr char kPrometheusContentType[] = "text/plain; version=0.0.4; charset=utf-8";

class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Adds `always` to every sample.
  explicit PrometheusText(Labels always = {}) : always_(std::move(always)) {}

  // Samples of one name (which differ by their labels) must follow each other; HELP and TYPE are written before the
  // first. By Prometheus' convention a counter's name ends in _total, and units are seconds and bytes.
  void Counter(const std::string& name, const std::string& help, double value, const Labels& labels = {});
  void Gauge(const std::string& name, const std::string& help, double value, const Labels& labels = {});
  void Histogram(const std::string& name, const std::string& help, const HistogramSnapshot& values,
                 const Labels& labels = {});

  const std::string& text() const { return text_; }

 private:
  void Head(const std::string& name, const std::string& help, const char* type);
  void Sample(const std::string& name, const Labels& labels, double value);

  const Labels always_;
  std::string last_name_;
  std::string text_;
};

}  // namespace muster
