#include "muster/launch/engines/kubernetes/pod_engine.h"

#include "absl/strings/str_cat.h"
#include "muster/launch/engines/kubernetes/pod_agents.h"
#include "muster/launch/engines/kubernetes/pod_program.h"
#include "muster/launch/engines/listening/listening_engine.h"

namespace muster {

std::unique_ptr<Engine> MakePodEngine(const PodEngineOptions& options, FdLoop& loop, const Clock& clock) {
  ListeningEngineOptions listening{.hosts = options.hosts,
                                   .towards = {},
                                   .rendezvous_file = kRendezvousOfPod,
                                   .rendezvous_is_given = true,
                                   .ports = PortRange{.first = options.pod.port, .count = 1},
                                   .goes_on = options.goes_on,
                                   .start_patience = options.pod.start_timeout,
                                   .note = options.note};
  return std::make_unique<ListeningEngine>(std::move(listening), std::make_unique<PodAgents>(options.pod.job, nullptr),
                                           loop, clock);
}

}  // namespace muster
