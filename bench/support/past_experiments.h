// A registry full of experiments that ended long ago, for measuring what they cost the commands of today.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/launch/registry/home.h"

namespace muster::bench {

inline constexpr int kTasksOfPastExperiment = 4;

// Writes `count` ended experiments of several projects, one of them `project`, through Registry as `muster train` and
// supervisors do, each with tasks, parameters, an environment, its file, and a folder with a lock. Where the machine
// has a file system in memory, the database is written there and copied to `home`, which must not be there yet: an
// fsync for each step would take minutes.
[[nodiscard]] absl::Status WritePastExperiments(const Home& home, const std::string& project, int count);

}  // namespace muster::bench
