// What the driver of a job tells the supervisor that it starts, by environment variables. Pure functions, thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

struct DriverVariables {
  std::string job;                                         // its id, as its system names it
  std::string at;                                          // where that system is, as JobEngine::at
  std::string socket;                                      // the driver's, as DriverAgentsOptions
  std::vector<std::pair<std::string, std::string>> hosts;  // name and address of each; none: not yet
  std::string says = "";                                   // as OwnJob::says
};

// Reads MUSTER_DRIVER_JOB, _AT, _SOCKET, _HOSTS ("h1=10.0.0.1,h2=10.0.0.2") and _SAYS in `environment` ("NAME=VALUE").
// NotFound: this isn't a process of a job with a driver. InvalidArgument names a variable that isn't what a driver
// sets.
absl::StatusOr<DriverVariables> ReadDriverVariables(const std::vector<std::string>& environment);

}  // namespace muster
