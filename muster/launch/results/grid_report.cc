#include "muster/launch/results/grid_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/launch/output/aligned_lines.h"

namespace muster {
namespace {

std::vector<std::string> MetricsThatEndWith(const std::set<std::string>& all, const std::string& wanted) {
  if (all.contains(wanted)) return {wanted};
  std::vector<std::string> found;
  for (const std::string& name : all)
    if (absl::EndsWith(name, "/" + wanted)) found.push_back(name);
  return found;
}

// Sorts missing values last, and non-finite ones before those.
std::pair<int, double> GridSortKey(const GridRow& row, const GridReportOptions& options) {
  const auto metric = row.metrics.find(options.metric);
  if (metric == row.metrics.end()) return {2, 0};
  const double value = metric->second.value;
  if (!std::isfinite(value)) return {1, 0};
  return {0, options.lowest_first ? value : -value};
}

std::string TheseMetrics(const std::set<std::string>& all) {
  return all.empty() ? "none yet" : absl::StrJoin(all, ", ");
}

absl::StatusOr<std::string> MetricNamed(const std::set<std::string>& all, const std::string& wanted) {
  const std::vector<std::string> found = MetricsThatEndWith(all, wanted);
  if (found.size() == 1) return found[0];
  return absl::InvalidArgumentError(
      found.empty()
          ? absl::StrCat("--metric ", wanted, ": no run has a metric of that name; accepted: ", TheseMetrics(all))
          : absl::StrCat("--metric ", wanted, ": which of ", absl::StrJoin(found, ", "), "?"));
}

absl::StatusOr<std::string> UsualMetric(const std::set<std::string>& all) {
  for (const char* usual : {"test_accuracy", "accuracy", "loss"}) {
    const std::vector<std::string> found = MetricsThatEndWith(all, usual);
    if (found.size() == 1) return found[0];
  }
  if (all.size() == 1) return *all.begin();
  return absl::InvalidArgumentError(absl::StrCat("say by which metric: --metric NAME; accepted: ", TheseMetrics(all)));
}

bool IsBetterLow(const std::string& metric) {
  const std::string name = absl::AsciiStrToLower(metric.substr(metric.rfind('/') + 1));
  return absl::StrContains(name, "loss") || absl::StrContains(name, "error");
}

}  // namespace

absl::StatusOr<GridReportOptions> ResolveMetric(const std::vector<GridRow>& rows, const std::string& metric,
                                                std::optional<bool> lowest_first) {
  std::set<std::string> all;
  for (const GridRow& row : rows)
    for (const auto& [name, value] : row.metrics) all.insert(name);
  if (metric.empty() && all.empty()) return GridReportOptions{.lowest_first = lowest_first.value_or(false)};
  ASSIGN_OR_RETURN(const std::string name, metric.empty() ? UsualMetric(all) : MetricNamed(all, metric));
  return GridReportOptions{.metric = name, .lowest_first = lowest_first.value_or(IsBetterLow(name))};
}

std::vector<GridRow> Sorted(std::vector<GridRow> rows, const GridReportOptions& options) {
  std::stable_sort(rows.begin(), rows.end(), [&options](const GridRow& a, const GridRow& b) {
    return GridSortKey(a, options) < GridSortKey(b, options);
  });
  return rows;
}

std::vector<std::string> ParametersOf(const std::vector<GridRow>& rows) {
  std::set<std::string> names;
  for (const GridRow& row : rows)
    for (const auto& [name, value] : row.run.parameters) names.insert(name);
  return {names.begin(), names.end()};
}

std::string GridTable(std::vector<GridRow> rows, const GridReportOptions& options) {
  const std::vector<std::string> parameters = ParametersOf(rows);
  std::vector<std::vector<std::string>> cells = {{"RUN", "STATE"}};
  cells[0].insert(cells[0].end(), parameters.begin(), parameters.end());
  if (!options.metric.empty()) cells[0].insert(cells[0].end(), {options.metric, "step"});
  for (const GridRow& row : Sorted(std::move(rows), options)) {
    std::vector<std::string> line = {row.run.id.ToString(), std::string(Name(row.run.state))};
    for (const std::string& name : parameters) {
      const auto value = row.run.parameters.find(name);
      line.push_back(value == row.run.parameters.end() ? "-" : value->second);
    }
    if (!options.metric.empty()) {
      const auto metric = row.metrics.find(options.metric);
      const bool there = metric != row.metrics.end();
      line.push_back(there ? absl::StrFormat("%.6g", metric->second.value) : "-");
      line.push_back(there && metric->second.step >= 0 ? absl::StrCat(metric->second.step) : "-");
    }
    cells.push_back(std::move(line));
  }
  return AlignedText(std::move(cells), 2);
}

std::string GridJson(std::vector<GridRow> rows, const GridReportOptions& options) {
  using Json = nlohmann::ordered_json;
  Json runs = Json::array();
  for (const GridRow& row : Sorted(std::move(rows), options)) {
    const auto metric = row.metrics.find(options.metric);
    const bool there = metric != row.metrics.end();
    Json metrics = Json::object();
    for (const auto& [name, one] : row.metrics) metrics[name] = one.value;
    Json parameters = Json::object();
    for (const auto& [name, value] : row.run.parameters) parameters[name] = value;
    Json run;
    run["id"] = row.run.id.ToString();
    run["state"] = Name(row.run.state);
    run["reason"] = row.run.reason;
    run["parameters"] = std::move(parameters);
    run["value"] = there ? Json(metric->second.value) : Json();
    run["step"] = there && metric->second.step >= 0 ? Json(metric->second.step) : Json();
    run["metrics"] = std::move(metrics);
    run["output_dir"] = row.run.output_dir;
    runs.push_back(std::move(run));
  }
  Json report;
  report["metric"] = options.metric.empty() ? Json() : Json(options.metric);
  report["lowest_first"] = options.lowest_first;
  report["runs"] = std::move(runs);
  return absl::StrCat(report.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace muster
