// What `muster run` says of a folder for checkpoints that hosts may not share. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "muster/launch/foreground/cluster_plan.h"

namespace muster {

// Returns lines for the user if ps, with a stated folder, or the evaluator run on other hosts than the chief, which
// writes the checkpoints: what works without a folder that they see, too, and what doesn't.
std::vector<std::string> UnsharedModelFolderLines(const ClusterRequest& request);

}  // namespace muster
