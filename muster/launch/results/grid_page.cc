// Makes the page of grid_report.h.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/launch/results/grid_report.h"
#include "muster/launch/results/metric_plot.h"

namespace muster {
namespace {

constexpr char kGridPageStyle[] = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2430; --faint: #5b6675; --rule: #d9dee6; --dot: #2f6fb8;
  --best: #b8440f; --stripe: #f4f6f9; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181e; --ink: #e4e9f0; --faint: #9aa7b8; --rule: #2f3945;
  --dot: #6fb0f5; --best: #ff9a62; --stripe: #1b212a; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .25rem; }
.plots { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr));
  margin: 1.5rem 0; }
figure { margin: 0; max-width: 40rem; }
figcaption { font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .tick { fill: var(--faint); }
.grid { stroke: var(--rule); }
.axis { stroke: var(--faint); }
.mean { fill: none; stroke: var(--dot); stroke-opacity: .45; stroke-width: 1.5; }
.run { fill: var(--dot); fill-opacity: .65; stroke: var(--paper); }
.best { fill: var(--best); fill-opacity: 1; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { color: var(--faint); padding-bottom: .5rem; text-align: left; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .8rem; text-align: right; white-space: nowrap; }
th.word, td.word { text-align: left; }
tbody tr:nth-child(even) { background: var(--stripe); }
tr.best td:first-child { color: var(--best); font-weight: 600; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid var(--dot); outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \2191"; }
th[aria-sort=descending] button::after { content: " \2193"; }
)";

// Missing values come last in both directions.
constexpr char kGridPageScript[] = R"(
const table = document.querySelector("table"), heads = [...table.tHead.rows[0].cells];
heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  heads.forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const key = row => row.cells[column].dataset.key;
  const order = (a, b) => a === "" || b === "" ? (a === "") - (b === "")
    : sign * (isNaN(a) || isNaN(b) ? a.localeCompare(b, undefined, {numeric: true}) : a - b);
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => order(key(a), key(b))));
}));
)";

struct GridPage {
  std::vector<GridRow> rows;  // sorted
  std::vector<std::string> parameters;
  std::vector<std::string> metrics;  // the one of the report first
  const GridRow* best = nullptr;     // null: no run has a finite value
  const GridReportOptions& options;
};

GridPage PageOf(std::vector<GridRow> rows, const GridReportOptions& options) {
  GridPage page = {.rows = Sorted(std::move(rows), options), .parameters = {}, .metrics = {}, .options = options};
  page.parameters = ParametersOf(page.rows);
  std::set<std::string> others;
  for (const GridRow& row : page.rows)
    for (const auto& [name, metric] : row.metrics) others.insert(name);
  others.erase(options.metric);
  if (!options.metric.empty()) page.metrics.push_back(options.metric);
  page.metrics.insert(page.metrics.end(), others.begin(), others.end());
  if (!page.rows.empty()) {
    const auto metric = page.rows[0].metrics.find(options.metric);
    if (metric != page.rows[0].metrics.end() && std::isfinite(metric->second.value)) page.best = &page.rows[0];
  }
  return page;
}

std::string ParametersText(const RunRecord& run) {
  return absl::StrJoin(run.parameters, ", ", absl::PairFormatter("="));
}

std::string MetricText(double value) { return absl::StrFormat("%.6g", value); }

std::string PageSummary(const GridPage& page) {
  std::string text = absl::StrCat(page.rows.size(), page.rows.size() == 1 ? " run" : " runs");
  if (page.best == nullptr) return absl::StrCat(text, page.metrics.empty() ? "; no results yet." : ".");
  const RunRecord& run = page.best->run;
  absl::StrAppend(&text, "; the ", page.options.lowest_first ? "lowest " : "greatest ", page.options.metric, " is ",
                  MetricText(page.best->metrics.at(page.options.metric).value), ", of ", run.id.ToString());
  if (!run.parameters.empty()) absl::StrAppend(&text, " with ", ParametersText(run));
  return text + ".";
}

// Returns points for the runs that have the parameter and a finite value.
std::vector<PlotPoint> PointsOf(const GridPage& page, const std::string& parameter) {
  std::vector<PlotPoint> points;
  for (const GridRow& row : page.rows) {
    const auto metric = row.metrics.find(page.options.metric);
    const auto value = row.run.parameters.find(parameter);
    if (metric == row.metrics.end() || value == row.run.parameters.end() || !std::isfinite(metric->second.value))
      continue;
    points.push_back({.x = value->second,
                      .y = metric->second.value,
                      .title = absl::StrCat(row.run.id.ToString(), ": ", ParametersText(row.run), ": ",
                                            MetricText(metric->second.value)),
                      .best = &row == page.best});
  }
  return points;
}

void AppendPlots(std::string& html, const GridPage& page) {
  std::vector<std::string> same;
  bool drawn = false;
  html += "<div class=\"plots\">\n";
  for (const std::string& parameter : page.parameters) {
    const std::vector<PlotPoint> points = PointsOf(page, parameter);
    std::set<std::string> values;
    for (const PlotPoint& point : points) values.insert(point.x);
    if (values.size() > 1) {
      drawn = true;
      absl::StrAppend(&html, "<figure><figcaption>",
                      EscapedHtml(absl::StrCat(page.options.metric, " against ", parameter)), "</figcaption>\n",
                      MetricPlot(parameter, page.options.metric, points), "</figure>\n");
    } else if (values.size() == 1) {
      same.push_back(absl::StrCat(parameter, "=", *values.begin()));
    }
  }
  html += "</div>\n";
  if (drawn)
    html +=
        "<p>Each dot is a run; point at it to see which; lines go through means; the best one stands "
        "out.</p>\n";
  if (!same.empty())
    absl::StrAppend(&html, "<p>The same in all runs with results: ", EscapedHtml(absl::StrJoin(same, ", ")), ".</p>\n");
}

void AppendHead(std::string& html, const std::string& name, bool word, const char* sorted) {
  absl::StrAppend(&html, "<th scope=\"col\"", word ? " class=\"word\"" : "",
                  *sorted == '\0' ? "" : absl::StrCat(" aria-sort=\"", sorted, "\""), "><button type=\"button\">",
                  EscapedHtml(name), "</button></th>");
}

void AppendCell(std::string& html, const std::string& text, const std::string& key, bool word) {
  absl::StrAppend(&html, "<td", word ? " class=\"word\"" : "", " data-key=\"", EscapedHtml(key), "\">",
                  EscapedHtml(text), "</td>");
}

void AppendRow(std::string& html, const GridPage& page, const GridRow& row) {
  html += &row == page.best ? "<tr class=\"best\">" : "<tr>";
  AppendCell(html, row.run.id.ToString(), absl::StrCat(row.run.id.run == 0 ? row.run.id.number : row.run.id.run), true);
  const std::string state(Name(row.run.state));
  AppendCell(html, state, state, true);
  for (const std::string& name : page.parameters) {
    const auto value = row.run.parameters.find(name);
    const std::string text = value == row.run.parameters.end() ? "" : value->second;
    AppendCell(html, text, text, false);
  }
  for (const std::string& name : page.metrics) {
    const auto metric = row.metrics.find(name);
    if (metric == row.metrics.end()) {
      AppendCell(html, "", "", false);
    } else {
      const double value = metric->second.value;
      AppendCell(html, MetricText(value), std::isfinite(value) ? absl::StrFormat("%.17g", value) : "", false);
    }
  }
  html += "</tr>\n";
}

void AppendTable(std::string& html, const GridPage& page) {
  html += "<div class=\"wide\">\n<table>\n<caption>All runs; a click on a heading sorts by it.</caption>\n<thead><tr>";
  AppendHead(html, "run", true, "");
  AppendHead(html, "state", true, "");
  for (const std::string& name : page.parameters) AppendHead(html, name, false, "");
  for (const std::string& name : page.metrics)
    AppendHead(html, name, false,
               name != page.options.metric ? "" : (page.options.lowest_first ? "ascending" : "descending"));
  html += "</tr></thead>\n<tbody>\n";
  for (const GridRow& row : page.rows) AppendRow(html, page, row);
  html += "</tbody>\n</table>\n</div>\n";
}

}  // namespace

std::string GridHtml(const std::string& title, std::vector<GridRow> rows, const GridReportOptions& options) {
  const GridPage page = PageOf(std::move(rows), options);
  std::string html =
      absl::StrCat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
                   EscapedHtml(title), "</title>\n<style>", kGridPageStyle, "</style>\n</head>\n<body>\n<main>\n<h1>",
                   EscapedHtml(title), "</h1>\n<p>", EscapedHtml(PageSummary(page)), "</p>\n");
  AppendPlots(html, page);
  AppendTable(html, page);
  absl::StrAppend(&html, "</main>\n<script>", kGridPageScript, "</script>\n</body>\n</html>\n");
  return html;
}

}  // namespace muster
