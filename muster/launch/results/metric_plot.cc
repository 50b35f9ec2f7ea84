#include "muster/launch/results/metric_plot.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/launch/results/plot_axis.h"

namespace muster {
namespace {

// Sizes of the drawing in its own units; a page scales it.
constexpr double kPlotWidth = 440, kPlotHeight = 280;
constexpr double kPlotLeft = 64, kPlotRight = 424, kPlotTop = 14, kPlotBottom = 226;
constexpr size_t kLongestTick = 14;  // characters

double XOf(double place) { return kPlotLeft + place * (kPlotRight - kPlotLeft); }
double YOf(double place) { return kPlotBottom - place * (kPlotBottom - kPlotTop); }

std::string ExactText(double number) { return absl::StrFormat("%.17g", number); }

// Shortens a longer text to the whole characters in its first `kLongestTick` bytes.
std::string TickText(const std::string& text) {
  if (text.size() <= kLongestTick) return text;
  size_t end = kLongestTick - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

void AppendPlotText(std::string& svg, const char* kind, const char* anchor, double x, double y,
                    const std::string& text) {
  absl::StrAppendFormat(&svg, "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", kind, anchor,
                        x, y, EscapedHtml(text));
}

void AppendPlotLine(std::string& svg, const char* kind, double x1, double y1, double x2, double y2) {
  absl::StrAppendFormat(&svg, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1,
                        x2, y2);
}

void AppendPlotAxes(std::string& svg, const PlotAxis& x_axis, const PlotAxis& y_axis, const std::string& parameter) {
  for (const PlotTick& tick : y_axis.Ticks()) {
    AppendPlotLine(svg, "grid", kPlotLeft, YOf(tick.at), kPlotRight, YOf(tick.at));
    AppendPlotText(svg, "tick", "end", kPlotLeft - 8, YOf(tick.at) + 4, tick.text);
  }
  const std::vector<PlotTick> ticks = x_axis.Ticks();
  // With many labels, every second one is a line lower so that they fit.
  const bool in_two_lines = ticks.size() > 6;
  for (size_t i = 0; i < ticks.size(); ++i) {
    AppendPlotLine(svg, "axis", XOf(ticks[i].at), kPlotBottom, XOf(ticks[i].at), kPlotBottom + 4);
    AppendPlotText(svg, "tick", "middle", XOf(ticks[i].at), kPlotBottom + (in_two_lines && i % 2 == 1 ? 29 : 16),
                   TickText(ticks[i].text));
  }
  AppendPlotLine(svg, "axis", kPlotLeft, kPlotBottom, kPlotRight, kPlotBottom);
  const bool logarithmic = x_axis.kind() == PlotAxis::Kind::kLogarithmic;
  AppendPlotText(svg, "label", "middle", (kPlotLeft + kPlotRight) / 2, kPlotHeight - 8,
                 absl::StrCat(parameter, logarithmic ? " (logarithmic)" : ""));
}

// Draws from left to right.
void AppendMeans(std::string& svg, const PlotAxis& x_axis, const PlotAxis& y_axis,
                 const std::vector<PlotPoint>& points) {
  std::map<double, std::pair<double, int>> sums;
  for (const PlotPoint& point : points) {
    auto& [sum, count] = sums[x_axis.Place(point.x)];
    sum += point.y;
    ++count;
  }
  svg += "<polyline class=\"mean\" points=\"";
  for (const auto& [place, sum] : sums)
    absl::StrAppendFormat(&svg, "%.1f,%.1f ", XOf(place), YOf(y_axis.Place(ExactText(sum.first / sum.second))));
  svg += "\"/>\n";
}

}  // namespace

std::string EscapedHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string MetricPlot(const std::string& parameter, const std::string& metric, const std::vector<PlotPoint>& points) {
  std::vector<std::string> xs, ys;
  for (const PlotPoint& point : points) {
    xs.push_back(point.x);
    ys.push_back(ExactText(point.y));
  }
  const PlotAxis x_axis(xs), y_axis(ys, /*may_be_logarithmic=*/false);
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n", kPlotWidth,
                                    kPlotHeight, EscapedHtml(absl::StrCat(metric, " against ", parameter)));
  AppendPlotAxes(svg, x_axis, y_axis, parameter);
  if (x_axis.kind() != PlotAxis::Kind::kWords) AppendMeans(svg, x_axis, y_axis, points);
  // Draws the best last, over the others.
  for (const bool best : {false, true}) {
    for (size_t i = 0; i < points.size(); ++i) {
      if (points[i].best != best) continue;
      absl::StrAppendFormat(&svg, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s</title></circle>\n",
                            best ? "run best" : "run", XOf(x_axis.Place(xs[i])), YOf(y_axis.Place(ys[i])), best ? 6 : 5,
                            EscapedHtml(points[i].title));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace muster
