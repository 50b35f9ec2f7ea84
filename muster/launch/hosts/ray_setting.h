// What a job of Ray is asked for that holds an experiment (docs/ray.md). Plain values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace muster {

// Where Ray's dashboard answers unless somebody says otherwise.
inline constexpr char kUsualRayAddress[] = "http://127.0.0.1:8265";
inline constexpr char kUsualRayPython[] = "python3";

struct RaySetting {
  int nodes = 1;            // of Ray, each with a part of the experiment
  std::string address;      // of the dashboard, as Ray's own commands take it; empty: RAY_ADDRESS, or kUsualRayAddress
  std::string python;       // a program that has Ray; empty: kUsualRayPython
  bool autoscaler = false;  // waits also for nodes of which Ray doesn't know that there may be such
  // What is asked for on each node, by Ray's names (CPU, GPU, memory, custom ones), in the place of what follows from
  // the tasks; 0: not asked for.
  std::map<std::string, double> resources;

  bool operator==(const RaySetting&) const = default;
};

// Takes one setting, as the experiment file and a flag give it: nodes, address, python, autoscaler, or resources.NAME.
// nullopt: back to what it is unless stated. InvalidArgument says what is accepted.
[[nodiscard]] absl::Status TakeRaySetting(RaySetting& ray, const std::string& name,
                                          const std::optional<std::string>& value);

}  // namespace muster
