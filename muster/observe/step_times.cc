#include "muster/observe/step_times.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace muster {
namespace {

// From 0.1 µs to 10 minutes, each bound 12 % above the one before, which limits the error of a median.
std::vector<double> Bounds() { return Histogram::ExponentialBounds(0.1, 1.12, 200); }

StepTimesRow RowOf(std::string what, const HistogramSnapshot& values, uint64_t steps, double all) {
  return {.what = std::move(what),
          .median_us = values.Quantile(0.5),
          .p99_us = values.Quantile(0.99),
          .mean_us = steps > 0 ? values.sum / static_cast<double>(steps) : 0,
          .percent = all > 0 ? 100 * values.sum / all : 0};
}

}  // namespace

std::string StepTimesText(const StepTimesTable& table) {
  if (table.steps == 0) return "";
  std::string text = absl::StrFormat("%s, %s: %d steps\n  %-12s %12s %12s %12s %7s\n", table.task, table.track,
                                     table.steps, "", "median us", "p99 us", "mean us", "%");
  const auto add = [&text](const StepTimesRow& row) {
    absl::StrAppendFormat(&text, "  %-12s %12.1f %12.1f %12.1f %7.1f\n", row.what, row.median_us, row.p99_us,
                          row.mean_us, row.percent);
  };
  add(table.whole);
  for (const StepTimesRow& row : table.rows) add(row);
  return text;
}

StepTimes::StepTimes() : other_(Bounds()) {
  for (size_t i = 0; i < kActivities; ++i) microseconds_.emplace_back(Bounds());
}

void StepTimes::Add(int64_t whole, const std::array<int64_t, kActivities>& parts) {
  int64_t rest = whole;
  for (size_t i = 1; i < kActivities; ++i) {
    rest -= parts[i];
    microseconds_[i].Add(static_cast<double>(parts[i]) * 1e-3);
  }
  other_.Add(static_cast<double>(std::max<int64_t>(rest, 0)) * 1e-3);
  microseconds_[0].Add(static_cast<double>(whole) * 1e-3);
}

StepTimesTable StepTimes::Table(const std::string& task, const std::string& track) const {
  const HistogramSnapshot whole = microseconds_[0].Snapshot();
  StepTimesTable table{.task = task, .track = track, .steps = whole.count, .whole = {}, .rows = {}};
  table.whole = RowOf(ActivityName(Activity::kStep), whole, whole.count, whole.sum);
  for (size_t i = 1; i < kActivities; ++i) {
    const HistogramSnapshot part = microseconds_[i].Snapshot();
    if (part.sum > 0) table.rows.push_back(RowOf(kActivityNames[i], part, whole.count, whole.sum));
  }
  table.rows.push_back(RowOf("other", other_.Snapshot(), whole.count, whole.sum));
  return table;
}

HistogramSnapshot StepTimes::Seconds(Activity activity) const {
  HistogramSnapshot values = microseconds_[static_cast<size_t>(activity)].Snapshot();
  for (double& bound : values.bounds) bound *= 1e-6;
  values.sum *= 1e-6;
  return values;
}

}  // namespace muster
