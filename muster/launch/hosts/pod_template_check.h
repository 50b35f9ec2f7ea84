// The pod_template of a KubernetesSetting, which is merged into each pod (docs/kubernetes.md). Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// `pod_template`: an object in JSON, or empty. InvalidArgument: it would take away or replace what muster finds a job's
// pods by, or its container, or states a termination grace within which muster can't end anything.
[[nodiscard]] absl::Status CheckPodTemplate(const std::string& pod_template);

// Returns the termination grace that pods have by this template, nullopt if it says nothing of it. A null takes
// muster's own away, and leaves that of Kubernetes.
std::optional<absl::Duration> GraceOfPodTemplate(const std::string& pod_template);

}  // namespace muster
