// Experiments, runs and tasks as JSON: docs/experiments/output.md has the fields. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/registry.h"

namespace muster {

nlohmann::json JsonOf(const RunRecord& run);
nlohmann::json JsonOf(const ExperimentId& id, const TaskRecord& task);

// The engine's job that a run is or was in.
nlohmann::json JsonOf(const JobOfRun& job);

// Returns JSON on one line, whatever bytes its strings contain.
std::string OneLineJson(const nlohmann::json& value);

}  // namespace muster
