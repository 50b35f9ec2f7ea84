// What a session's config asks of torch, done: the device that the module computes on, how much of a GPU's memory is
// taken, how many threads compute. What torch can't do is said in the log. Used by the training thread.
#pragma once

#include "absl/status/status.h"
#include "muster/train/node/node.h"
#include "muster/train/session/session.h"
#include "muster/train/session/session_config.h"

namespace muster {

// Before the session is made of `environment`, which then says where it computes. Moves the module that is trained to
// the device that was asked for (NodeOptions::device, --device) or, if there is none and the config allows it, to the
// CPU. Errors: those of CheckSessionConfig and PlaceComputation; what torch says when the module is moved.
[[nodiscard]] absl::Status PrepareDevices(Node& node, const SessionConfig& config, SessionEnvironment& environment);

}  // namespace muster
