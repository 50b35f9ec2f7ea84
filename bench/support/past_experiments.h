// Fills a registry with experiments that ended long ago, to measure what they cost the commands.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/launch/registry/home.h"

namespace muster::bench {

inline constexpr int kTasksOfPastExperiment = 4;

// Writes `count` ended experiments of several projects, one of them `project`, through Registry as `muster train` and
// supervisors do, each with tasks, parameters, an environment, its file, and a folder with a lock. If the machine has a
// file system in memory, writes the database there and copies it to `home`, which must not exist yet: an fsync for each
// step would take minutes.
[[nodiscard]] absl::Status WritePastExperiments(const Home& home, const std::string& project, int count);

}  // namespace muster::bench
