// What the pod of a job's supervisor is told about its job, by environment variables of its container. Pure functions,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

struct PodVariables {
  std::string job;                                   // its name, which is also that of the supervisor's pod
  std::string at;                                    // where it is, as JobEngine::at
  std::string run;                                   // the run's id, as the agents know it
  int pods = 1;                                      // of agents
  uint16_t port = 0;                                 // on which the supervisor listens for agents
  absl::Duration start_timeout = absl::Minutes(10);  // the agents come within this
  absl::Duration ending = absl::Seconds(3);          // tasks of a pod that is ended get so long
  bool may_ask_api = false;                          // a service account was named

  std::vector<std::pair<std::string, std::string>> List() const;  // name and value of each
};

// The name of a pod's host in the run, from 0: "h0".
std::string HostOfPod(int index);

// Reads them in `environment` ("NAME=VALUE"). NotFound: this isn't the pod of a job's supervisor. InvalidArgument
// names a variable that isn't what a manifest sets.
absl::StatusOr<PodVariables> ReadPodVariables(const std::vector<std::string>& environment);

}  // namespace muster
