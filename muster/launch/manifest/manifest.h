// What `muster manifest` prints: files for Kubernetes that run a cluster of tasks, a container each, without an agent
// and without a supervisor: Kubernetes starts a task again, and muster's ps tell each other's tasks how it goes. The
// forms are those of manifest_request.h; docs/containers.md has them for users. Pure, thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/manifest/manifest_request.h"

namespace muster {

// Returns the file, which `kubectl apply -f` takes: a comment that says which Kubernetes it needs, and the objects. The
// same request is always the same text. Errors of CheckManifest (manifest_check.h).
absl::StatusOr<std::string> ManifestText(const ManifestRequest& request);

// Returns the number of the objects' pods that Kubernetes may make again after failures of the role's tasks.
int RestartsOf(const ManifestRole& role);

}  // namespace muster
