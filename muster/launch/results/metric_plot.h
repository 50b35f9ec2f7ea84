// Plots a metric against a parameter, as an SVG element for a page. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct PlotPoint {
  std::string x;      // the parameter's value
  double y = 0;       // the metric's, finite
  std::string title;  // its tooltip: "4.3: learning-rate=0.1: 0.93"
  bool best = false;
};

// Draws a point per run, and a line through the means of runs with the same value (only between numbers; words have no
// order). Needs at least one point. The page sets the colours of the classes grid, axis, tick, label, mean, run and
// best.
std::string MetricPlot(const std::string& parameter, const std::string& metric, const std::vector<PlotPoint>& points);

// Escapes text for HTML and SVG, in text and in attributes.
std::string EscapedHtml(std::string_view text);

}  // namespace muster
