#include "muster/observe/step_table_json.h"

namespace muster {
namespace {

// Keeps the bound of every fifth bucket: each is 1.76 times the one before.
constexpr size_t kKeptBuckets = 5;

nlohmann::ordered_json ToJson(const StepTimesRow& row) {
  return {{"what", row.what},
          {"median_us", row.median_us},
          {"p99_us", row.p99_us},
          {"mean_us", row.mean_us},
          {"percent", row.percent}};
}

StepTimesRow FromJson(const nlohmann::ordered_json& json) {
  return {.what = json.at("what").get<std::string>(),
          .median_us = json.at("median_us").get<double>(),
          .p99_us = json.at("p99_us").get<double>(),
          .mean_us = json.at("mean_us").get<double>(),
          .percent = json.at("percent").get<double>()};
}

}  // namespace

nlohmann::ordered_json StepTableToJson(const StepTimesTable& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const StepTimesRow& row : table.rows) rows.push_back(ToJson(row));
  return {{"task", table.task},
          {"thread", table.track},
          {"steps", table.steps},
          {"whole", ToJson(table.whole)},
          {"rows", std::move(rows)}};
}

StepTimesTable StepTableFromJson(const nlohmann::ordered_json& json) {
  StepTimesTable table{.task = json.at("task").get<std::string>(),
                       .track = json.at("thread").get<std::string>(),
                       .steps = json.at("steps").get<uint64_t>(),
                       .whole = FromJson(json.at("whole")),
                       .rows = {}};
  for (const auto& row : json.at("rows")) table.rows.push_back(FromJson(row));
  return table;
}

void AddStepTimes(const Track& track, PrometheusText& text) {
  text.Histogram("muster_step_seconds", "Whole steps; on a ps, pushes and pulls.",
                 track.times().Seconds(Activity::kStep).Coarser(kKeptBuckets));
  for (size_t i = 1; i < kActivities; ++i) {
    const HistogramSnapshot seconds = track.times().Seconds(static_cast<Activity>(i));
    if (seconds.sum > 0)
      text.Histogram("muster_step_activity_seconds", "Of each step, in one activity; nested ones apart.",
                     seconds.Coarser(kKeptBuckets), {{"activity", kActivityNames[i]}});
  }
}

}  // namespace muster
