// A metric against a parameter, as an SVG element for a page. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct PlotPoint {
  std::string x;      // the parameter's value
  double y = 0;       // the metric's, finite
  std::string title;  // what is said of it: "4.3: learning-rate=0.1: 0.93"
  bool best = false;
};

// A point a run, and a line through the means of those with the same value (through numbers only: words have no order).
// At least one point. Colours are the page's, by the classes grid, axis, tick, label, mean, run and best.
std::string MetricPlot(const std::string& parameter, const std::string& metric, const std::vector<PlotPoint>& points);

// For HTML and SVG, in text and in attributes.
std::string EscapedHtml(std::string_view text);

}  // namespace muster
