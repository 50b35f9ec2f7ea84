// What a supervisor in a pod finds out about the end of its own job, for which it has no kubectl. Blocks for seconds.
#pragma once

#include <string>
#include <vector>

#include "muster/launch/engines/job_engine.h"
#include "muster/launch/engines/kubernetes/pod_program.h"

namespace muster {

// Returns the news of the job in whose supervisor's pod this process is, which has got SIGTERM. It was cancelled if
// muster has said so (`asked_file`), or if the API, which a service account may ask, has the pod as deleted by
// somebody. Otherwise Kubernetes ends it: by an eviction, a preemption, the end of its node. `environment`:
// "NAME=VALUE".
JobNews NewsOfOwnPod(const std::vector<std::string>& environment, const std::string& asked_file = kAskedFileOfPod);

}  // namespace muster
