// A grid's results: a table for the terminal, JSON, and a page with the metric against each parameter. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/launch/registry/registry.h"
#include "muster/launch/results/metrics.h"

namespace muster {

struct GridRow {
  RunRecord run;
  std::map<std::string, Metric> metrics;
};

struct GridReportOptions {
  std::string metric;         // to sort by; a name that is unique by its end will do ("accuracy" for "eval/accuracy")
  bool lowest_first = false;  // otherwise the greatest first; runs without the metric come last
};

// The full name of the metric. NotFound naming those there are. Without a name: "test_accuracy", "accuracy", "loss"
// (lowest first) or the only one.
absl::StatusOr<GridReportOptions> ResolveMetric(const std::vector<GridRow>& rows, const GridReportOptions& wanted);
std::string GridTable(std::vector<GridRow> rows, const GridReportOptions& options);
std::string GridJson(std::vector<GridRow> rows, const GridReportOptions& options);
// One file, nothing loaded from anywhere: the table, sortable, and a plot of the metric for each parameter (inline
// SVG).
std::string GridHtml(std::vector<GridRow> rows, const GridReportOptions& options);

}  // namespace muster
