// Why an experiment that hasn't ended has no supervisor that could be asked. Stateless.
#pragma once

#include <string>

#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

// Returns what a command says that has waited for the supervisor: names the log only if it is there. `in_job`: an
// engine of jobs is to have the supervisor.
std::string MissingSupervisorText(const Home& home, const ExperimentId& id, bool in_job);

}  // namespace muster
