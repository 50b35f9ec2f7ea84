// The table of step times as JSON for status pages, and the same times as metrics. Pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "muster/observe/prometheus_text.h"
#include "muster/observe/step_times.h"
#include "muster/observe/track.h"

namespace muster {

nlohmann::ordered_json StepTableToJson(const StepTimesTable& table);
// Throws nlohmann::json's exceptions if `json` isn't such a table.
StepTimesTable StepTableFromJson(const nlohmann::ordered_json& json);

// Adds muster_step_seconds for whole steps, and muster_step_activity_seconds by activity.
void AddStepTimes(const Track& track, PrometheusText& text);

}  // namespace muster
