// Finds what Kubernetes, or a form of manifest, wouldn't take. Pure, thread-safe.
#pragma once

#include "absl/status/status.h"
#include "muster/launch/manifest/manifest_request.h"

namespace muster {

// InvalidArgument with one line for each mistake, which names the flag of `muster manifest` and what is accepted.
[[nodiscard]] absl::Status CheckManifest(const ManifestRequest& request);

}  // namespace muster
