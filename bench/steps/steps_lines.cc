#include "bench/steps/steps_lines.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/support/rounds.h"

namespace muster::bench {
namespace {

StepsWay Reference(const StepsWay& way, Against against) {
  StepsWay reference = way;
  switch (against) {
    case Against::kLocal:
      return {.model = way.model, .rule = way.rule, .workers = 1};
    case Against::kTwoLocals:
      return {.model = way.model, .rule = way.rule, .workers = 2};
    case Against::kUntraced:
      reference.traced = false;
      return reference;
    case Against::kSwitchOff:
      reference.amd = false;
      return reference;
  }
  return reference;
}

// Returns what gets a column: one plain process, as many as workers, and for a traced way the same untraced.
std::vector<Against> Comparisons(const StepsWay& way) {
  std::vector<Against> all = {Against::kLocal};
  if (way.workers == 2) all.push_back(Against::kTwoLocals);
  if (way.traced) all.push_back(Against::kUntraced);
  return all;
}

std::string Column(const nlohmann::ordered_json& row, Against against) {
  const std::string key = absl::StrCat("ratio_to_", NameOf(against));
  return row.contains(key) ? absl::StrFormat("%.3f", row.at(key).get<double>()) : "";
}

}  // namespace

double StepsLine::median() const { return SpreadOf(rates).median; }
double StepsLine::least() const { return SpreadOf(rates).least; }
double StepsLine::most() const { return SpreadOf(rates).most; }

const char* NameOf(Against against) {
  switch (against) {
    case Against::kLocal:
      return "local";
    case Against::kTwoLocals:
      return "two_locals";
    case Against::kUntraced:
      return "untraced";
    case Against::kSwitchOff:
      return "switch_off";
  }
  return "";
}

const StepsLine* Find(const std::vector<StepsLine>& lines, const StepsWay& way) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const StepsLine& line) { return line.way == way; });
  return found == lines.end() ? nullptr : &*found;
}

std::optional<double> RatioOf(const std::vector<StepsLine>& lines, const StepsWay& way, Against against) {
  const StepsLine* const line = Find(lines, way);
  const StepsLine* const reference = Find(lines, Reference(way, against));
  if (line == nullptr || reference == nullptr || line->failed() || reference->failed()) return std::nullopt;
  return MedianRatio(line->rates, reference->rates);
}

void PrintHeadings() {
  std::fprintf(stderr, "%-8s %-5s %-32s %7s %9s %9s %9s %8s %8s %9s\n", "model", "rule", "way", "workers", "steps/s",
               "least", "most", "/ local", "/ two", "/untraced");
}

void PrintRows(const std::vector<StepsLine>& lines) {
  for (const StepsLine& line : lines) {
    const StepsWay& way = line.way;
    nlohmann::ordered_json row = {{"bench", "steps"},
                                  {"model", way.model},
                                  {"rule", way.rule},
                                  {"mode", way.mode},
                                  {"apply", way.apply},
                                  {"transport", way.transport},
                                  {"wire", way.wire},
                                  {"reduce", way.reduce},
                                  {"undo", way.undo},
                                  {"trace", way.traced},
                                  {"amd_switch", way.amd},
                                  {"workers", way.workers},
                                  {"steps_per_s", line.median()},
                                  {"least", line.least()},
                                  {"most", line.most()}};
    for (const Against against : Comparisons(way))
      if (const auto ratio = RatioOf(lines, way, against)) row[absl::StrCat("ratio_to_", NameOf(against))] = *ratio;
    if (line.failed()) row["failed"] = true;
    std::printf("%s\n", row.dump().c_str());
    const int digits = line.median() < 100 ? 1 : 0;
    std::fprintf(stderr, "%-8s %-5s %-32s %7d %9.*f %9.*f %9.*f %8s %8s %9s%s\n", way.model.c_str(), way.rule.c_str(),
                 NameOf(way).c_str(), way.workers, digits, line.median(), digits, line.least(), digits, line.most(),
                 Column(row, Against::kLocal).c_str(), Column(row, Against::kTwoLocals).c_str(),
                 Column(row, Against::kUntraced).c_str(), line.failed() ? "  FAILED" : "");
  }
  std::fflush(stdout);
}

}  // namespace muster::bench
