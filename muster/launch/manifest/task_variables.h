// The environment variables of a role's containers: all tasks of a role have one description, so what differs among
// them refers to the pod's index. Pure, thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/launch/manifest/manifest_request.h"

namespace muster {

// Returns `text` so that Kubernetes leaves it as it is: it would put a variable's value in the place of $(NAME), in
// values of variables and in commands.
std::string KeptFromExpansion(absl::string_view text);

// Returns the list of EnvVar of the role's container. An address must be as ManifestAddress says.
nlohmann::ordered_json TaskVariables(const ManifestRequest& request, const ManifestRole& role);

}  // namespace muster
