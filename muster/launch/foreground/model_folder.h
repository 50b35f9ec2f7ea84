// What `muster run` says of a folder for checkpoints that hosts may not share. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "muster/launch/foreground/cluster_plan.h"

namespace muster {

// Returns lines for the user if ps, with a stated folder, or the evaluator run on other hosts than the chief, which
// writes the checkpoints: what works without a folder that they see, too, and what doesn't. `shared`: a folder that
// surely all hosts see, about which and below which nothing is to say; empty: none is known.
std::vector<std::string> UnsharedModelFolderLines(const ClusterRequest& request, const std::string& shared);

}  // namespace muster
