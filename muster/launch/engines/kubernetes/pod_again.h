// Makes the pod of a lost agent again, for a supervisor whose job names a service account. Blocks for seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"

namespace muster {

// Returns the pod to make in the place of those in `list`, all that this host of the job has had, as the API lists
// them: `pattern` (that of any agent, JSON) with the host's name. nullopt: one of them runs, or is about to, on a node
// that is heard. ResourceExhausted: two of them have used more than their memory limit, which the next would do, too.
// InvalidArgument: neither is what it should be.
absl::StatusOr<std::optional<OrderedJson>> PodInThePlaceOf(std::string_view list, std::string_view pattern,
                                                           const std::string& host);

// Does it in the cluster, as this process's pod was told in `environment` ("NAME=VALUE"). OK also if the host's pod
// runs. The errors of CallClusterApi.
[[nodiscard]] absl::Status MakePodAgain(const std::vector<std::string>& environment, const std::string& host);

}  // namespace muster
