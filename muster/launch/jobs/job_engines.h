// Which engine of jobs a name means. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

// `at`: where the engine is, as JobEngine::at; "": as `environment` says, that of this process ("NAME=VALUE"). Returns
// null for a name that no engine has.
std::unique_ptr<JobEngine> MakeJobEngine(const std::string& name, const std::string& at,
                                         const std::vector<std::string>& environment);

// Returns the engine of whose jobs an experiment with this setting is to be; null: of none. An error: where it is can't
// be found out, so that nothing may be submitted. Blocks for a moment.
absl::StatusOr<std::unique_ptr<JobEngine>> JobEngineOf(const HostSetting& setting,
                                                       const std::vector<std::string>& environment);

// Returns JobEngine::title of the engine with this name; for a name that no engine has, the name.
std::string JobEngineTitle(const std::string& name);

// Returns the names of all engines of jobs.
std::vector<std::string> JobEngineNames();

}  // namespace muster
