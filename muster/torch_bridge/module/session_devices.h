// Applies a session's config to torch: the device on which the model computes, how much of a GPU's memory to take, how
// many threads compute. Logs what torch can't do. Used by the training thread.
#pragma once

#include "absl/status/status.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session.h"
#include "muster/train/session/session_config.h"

namespace muster {

// Call it before a session is made from `environment`, which it tells where the session computes. Moves the trained
// model to the requested device (NodeOptions::device, --device) or, if it doesn't exist and the config allows it, to
// the CPU. Errors: those of CheckSessionConfig and PlaceComputation; torch's when the model is moved.
[[nodiscard]] absl::Status PrepareDevices(Node& node, const SessionConfig& config, SessionEnvironment& environment);

}  // namespace muster
