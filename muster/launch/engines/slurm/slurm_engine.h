// The engine for the nodes of a job of Slurm: one srun starts an agent on each, and the agents connect back over TCP to
// this process, which is in the job or has made it (docs/slurm_engine.md). A node whose agent has ended gets another
// one by a step of its own. Used by the loop's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/listening/listening_engine.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct SlurmEngineOptions {
  std::vector<std::string> hosts;            // all nodes of the job, in Slurm's order
  std::vector<std::string> environment;      // of srun before it is scrubbed, "NAME=VALUE"
  std::string job;                           // of the agents: letters, digits and '-'
  absl::Duration grace = absl::Seconds(30);  // of the agents, in whole seconds
  std::string muster;                        // the file, as the nodes see it
  std::string folder;                        // for the rendezvous: one that the nodes see; it exists
  bool goes_on = false;                      // the agents are there: those of the supervisor before
  bool in_job = false;                       // HostPlan::in_job
  std::optional<PortRange> ports;            // HostPlan::ports, for the supervisor's own
  std::function<void(const std::string& line)> note = [](const std::string&) {};  // takes a line for the user
};

class SlurmEngine final : public ListeningEngine {
 public:
  // Borrows `loop` and `clock`, which must outlive it.
  SlurmEngine(const SlurmEngineOptions& options, FdLoop& loop, const Clock& clock);

  // NotFound: there is no srun, or the file of muster isn't there any more. The errors of writing to the folder.
  absl::Status Start(EngineEvents& events) override;

 private:
  const std::string muster_;
};

}  // namespace muster
