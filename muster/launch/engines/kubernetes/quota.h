// Whether the quotas of a namespace can ever hold a job.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"

namespace muster {

// `refusal`: ResourceExhausted, of this manifest. Returns InvalidArgument that names quota, what is asked and what is
// hard, if a quota is too small for the job even when nothing else is there; otherwise, and if the quotas may not be
// seen, `refusal`. What only some pods take, by a quota's scopes or what the cluster itself adds to them, isn't
// counted. Blocks for a call of kubectl.
absl::Status IfItEverFits(const Kubectl& kubectl, const std::string& manifest, const absl::Status& refusal);

}  // namespace muster
