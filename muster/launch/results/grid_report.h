// A grid's results: a table for the terminal, JSON, and a page with the metric against each parameter. An experiment
// without a grid counts as a grid with one run. Pure, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/results/metrics.h"

namespace muster {

struct GridRow {
  RunRecord run;
  std::map<std::string, ResultMetric> metrics;
};

struct GridReportOptions {
  std::string metric;         // sorts the rows; a unique end is enough ("accuracy" for "eval/accuracy")
  bool lowest_first = false;  // otherwise highest first; non-finite and missing ones come last
};

// Resolves the metric's full name. InvalidArgument naming those that exist. Without a name it is "test_accuracy",
// "accuracy", "loss" or the only one; none if no run has any (the reports then keep the order of the runs). Unless
// `lowest_first` is given, a metric sorts lowest first if its name, without folders, contains "loss" or "error".
absl::StatusOr<GridReportOptions> ResolveMetric(const std::vector<GridRow>& rows, const std::string& metric,
                                                std::optional<bool> lowest_first);

// Returns the rows in the order of the reports.
std::vector<GridRow> Sorted(std::vector<GridRow> rows, const GridReportOptions& options);

// Returns the names of all parameters of the rows, in order.
std::vector<std::string> ParametersOf(const std::vector<GridRow>& rows);

// Returns one line per run: its id, state, parameters, the metric and its step.
std::string GridTable(std::vector<GridRow> rows, const GridReportOptions& options);

// Returns {"metric", "lowest_first", "runs": [{"id", "state", "reason", "parameters", "value", "step", "metrics",
// "output_dir"}]}, indented; missing and non-finite values are null.
std::string GridJson(std::vector<GridRow> rows, const GridReportOptions& options);

// Returns one HTML file that loads nothing: the table with all metrics, sorted by a click, and a plot of the metric for
// each parameter that differs between runs (inline SVG). `title`: "Experiment 4 of tea-timer".
std::string GridHtml(const std::string& title, std::vector<GridRow> rows, const GridReportOptions& options);

}  // namespace muster
