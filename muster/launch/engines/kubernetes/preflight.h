// What is checked in a cluster before anything of a job is made there. Blocks for seconds, with thousands of pods for
// minutes. Not thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"

namespace muster {

// Asks whether this user may make the job's pods, look at them, reach into them and take them away, whether its claims
// and its gang's API are there, and has the API server check the manifest without keeping anything of it. The errors of
// Kubectl::Run; InvalidArgument also names a claim or an API that isn't there.
[[nodiscard]] absl::Status CheckInCluster(const Kubectl& kubectl, const std::string& manifest);

}  // namespace muster
