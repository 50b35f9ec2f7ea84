// What `muster run` says of a folder for checkpoints that hosts may not share. Pure, thread-safe.
#pragma once

#include <string>

#include "muster/launch/foreground/cluster_plan.h"

namespace muster {

// Returns a line for the user if the evaluator runs on another host than the chief, which writes the checkpoints: what
// works without a folder that both see, and what doesn't. "" otherwise.
std::string UnsharedModelFolderText(const ClusterRequest& request);

}  // namespace muster
