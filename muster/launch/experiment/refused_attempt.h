// An attempt of an experiment that is refused before its tasks begin, because it would begin anew: the experiment stays
// what the attempt before has made of it. Stateless.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// A FailedPrecondition that IsRefusedAttempt knows.
absl::Status RefusedAttempt(const std::string& why);
bool IsRefusedAttempt(const absl::Status& status);

// Takes a refused attempt back (Registry::TakeRestartBack), and leaves the reason in Home::refused for the command that
// has started it. Returns false, having changed nothing, if there was no attempt before or nothing can be written.
bool TakeBackRefused(const Home& home, Registry& registry, const ExperimentId& id, const absl::Status& why);

}  // namespace muster
