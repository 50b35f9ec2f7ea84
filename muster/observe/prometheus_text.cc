#include "muster/observe/prometheus_text.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.12g", value);
}

}  // namespace

void PrometheusText::Head(const std::string& name, const std::string& help, const char* type) {
  if (last_name_ == name) return;
  last_name_ = name;
  absl::StrAppend(&text_, "# HELP ", name, " ", absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}}), "\n# TYPE ",
                  name, " ", type, "\n");
}

void PrometheusText::Sample(const std::string& name, const Labels& labels, double value) {
  text_ += name;
  const char* before = "{";
  for (const Labels* list : {&always_, &labels}) {
    for (const auto& [label, text] : *list) {
      absl::StrAppend(&text_, before, label, "=\"",
                      absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
      before = ",";
    }
  }
  if (*before == ',') text_ += '}';
  absl::StrAppend(&text_, " ", Number(value), "\n");
}

void PrometheusText::Counter(const std::string& name, const std::string& help, double value, const Labels& labels) {
  Head(name, help, "counter");
  Sample(name, labels, value);
}

void PrometheusText::Gauge(const std::string& name, const std::string& help, double value, const Labels& labels) {
  Head(name, help, "gauge");
  Sample(name, labels, value);
}

void PrometheusText::Histogram(const std::string& name, const std::string& help, const HistogramSnapshot& values,
                               const Labels& labels) {
  Head(name, help, "histogram");
  uint64_t up_to = 0;
  for (size_t i = 0; i < values.counts.size(); ++i) {
    up_to += values.counts[i];
    Labels bucket = labels;
    bucket.emplace_back("le", i < values.bounds.size() ? Number(values.bounds[i]) : "+Inf");
    Sample(name + "_bucket", bucket, static_cast<double>(up_to));
  }
  Sample(name + "_sum", labels, values.sum);
  Sample(name + "_count", labels, static_cast<double>(up_to));
}

}  // namespace muster
