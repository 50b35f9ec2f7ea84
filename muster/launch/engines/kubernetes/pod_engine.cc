#include "muster/launch/engines/kubernetes/pod_engine.h"

#include <utility>

#include "muster/launch/engines/kubernetes/api_pod_maker.h"
#include "muster/launch/engines/kubernetes/pod_agents.h"
#include "muster/launch/engines/kubernetes/pod_program.h"
#include "muster/launch/engines/listening/listening_engine.h"

namespace muster {
namespace {

// A process that looks at the job gives it back before its supervisor ends the run because pods are missing.
constexpr absl::Duration kLookersLead = absl::Minutes(1);

}  // namespace

std::unique_ptr<Engine> MakePodEngine(const PodEngineOptions& options, FdLoop& loop, const Clock& clock) {
  ListeningEngineOptions listening{.hosts = options.hosts,
                                   .towards = {},
                                   .rendezvous_file = kRendezvousOfPod,
                                   .rendezvous_is_given = true,
                                   .ports = PortRange{.first = options.pod.port, .count = 1},
                                   .goes_on = options.goes_on,
                                   .start_patience = options.pod.start_timeout + kLookersLead,
                                   .note = options.note};
  std::unique_ptr<PodMaker> maker;
  if (options.pod.may_ask_api) maker = std::make_unique<ApiPodMaker>(options.environment, loop);
  return std::make_unique<ListeningEngine>(
      std::move(listening), std::make_unique<PodAgents>(options.pod.job, std::move(maker), clock), loop, clock);
}

}  // namespace muster
