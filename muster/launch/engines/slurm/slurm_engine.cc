#include "muster/launch/engines/slurm/slurm_engine.h"

#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "muster/launch/engines/rendezvous_file.h"
#include "muster/launch/engines/slurm/slurm_steps.h"

namespace muster {
namespace {

AgentProgram ProgramOfAgents(const SlurmEngineOptions& options) {
  return {
      .muster = options.muster, .job = options.job, .rendezvous = "", .grace = options.grace, .in_job = options.in_job};
}

}  // namespace

SlurmEngine::SlurmEngine(const SlurmEngineOptions& options, FdLoop& loop, const Clock& clock)
    : ListeningEngine({.hosts = options.hosts,
                       .towards = {},
                       .rendezvous_file = RendezvousFileIn(options.folder, options.job),
                       .ports = options.ports,
                       .goes_on = options.goes_on,
                       .note = options.note},
                      std::make_unique<SlurmSteps>(ProgramOfAgents(options), options.environment, loop, clock), loop,
                      clock),
      muster_(options.muster) {}

absl::Status SlurmEngine::Start(EngineEvents& events) {
  if (access(muster_.c_str(), X_OK) != 0)
    return absl::NotFoundError(absl::StrCat(muster_, " isn't there any more, so the nodes can't run it: start again"));
  return ListeningEngine::Start(events);
}

}  // namespace muster
