// A grid's results: a table for the terminal, JSON, and a page with the metric against each parameter. An experiment
// that is no grid is one of one run. Pure, thread-safe.
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
  std::string metric;         // to sort by; a name that is unique by its end will do ("accuracy" for "eval/accuracy")
  bool lowest_first = false;  // otherwise the greatest first; numbers that aren't finite and runs without it come last
};

// The full name of the metric. InvalidArgument naming those there are. Without a name: "test_accuracy", "accuracy",
// "loss" or the only one; none (the reports are in the order of the runs then) if no run has any. Unless
// `lowest_first` says which, a loss or an error has its lowest first: whose name, without folders, has "loss" or
// "error" in it.
absl::StatusOr<GridReportOptions> ResolveMetric(const std::vector<GridRow>& rows, const std::string& metric,
                                                std::optional<bool> lowest_first);

// As the reports have them.
std::vector<GridRow> Sorted(std::vector<GridRow> rows, const GridReportOptions& options);

// Names of all parameters of the rows, in order.
std::vector<std::string> ParametersOf(const std::vector<GridRow>& rows);

// A line a run: its id, state, parameters, the metric and its step.
std::string GridTable(std::vector<GridRow> rows, const GridReportOptions& options);

// {"metric", "lowest_first", "runs": [{"id", "state", "reason", "parameters", "value", "step", "metrics",
// "output_dir"}]}, indented; null for what isn't there or not finite.
std::string GridJson(std::vector<GridRow> rows, const GridReportOptions& options);

// One file of HTML, nothing loaded from anywhere: the table with all metrics, sorted by a click, and a plot of the
// metric for each parameter that isn't the same in all runs (inline SVG). `title`: "Experiment 4 of ai-toaster".
std::string GridHtml(const std::string& title, std::vector<GridRow> rows, const GridReportOptions& options);

}  // namespace muster
