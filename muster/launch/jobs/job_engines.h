// Which engine of jobs a name means. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/launch/engines/job_engine.h"

namespace muster {

// `environment`: of this process, "NAME=VALUE". Returns null for a name that no engine has.
std::unique_ptr<JobEngine> MakeJobEngine(const std::string& name, const std::vector<std::string>& environment);

}  // namespace muster
