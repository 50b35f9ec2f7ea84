// The session objects beside MonitoredTrainingSession, for torch programs: SingularMonitoredSession, Supervisor's
// façade, SyncReplicasOptimizer's trainer. docs/sessions.md says who uses which. Thin, as training.h. Used by one
// thread.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/torch_bridge/facade/training.h"
#include "muster/train/session/session_creator.h"
#include "muster/train/tensorflow/supervisor.h"
#include "muster/train/tensorflow/sync_replicas.h"

namespace muster {

struct SingularMonitoredSessionOptions {
  std::shared_ptr<Scaffold> scaffold;
  std::string master;
  SessionConfig config;
  std::string checkpoint_dir;  // restored from; saved to by a hook alone
  double stop_grace_period_secs = 120;
  std::string checkpoint_filename_with_path;  // instead of a checkpoint_dir; see SessionCreatorOptions
};

// Always the chief, and recovers from nothing: a ps that has lost the model is an Error (exit code 138).
class SingularMonitoredSession final : public MonitoredSession {
 public:
  explicit SingularMonitoredSession(Server& server, std::vector<std::shared_ptr<SessionHook>> hooks = {},
                                    SingularMonitoredSessionOptions options = {});
  RawSession raw_session() { return RawSession(session()); }
};

// A Supervisor of this process's server; its steps. Throws Error.
class TorchSupervisor {
 public:
  TorchSupervisor(Server& server, const SupervisorOptions& options)
      : supervisor_(MakeTorchEnvironment(server, options.config), options) {}

  void PrepareOrWaitForSession(bool start_standard_services = true) {
    ThrowIfError(supervisor_.PrepareOrWaitForSession(start_standard_services));
  }
  // The chief's threads of summaries and checkpoints, where PrepareOrWaitForSession wasn't to start them.
  void StartStandardServices() { ThrowIfError(supervisor_.StartStandardServices()); }
  // Calls `body` between the start and the stop. What it throws stops every thread, and is thrown on after that, unless
  // it is an Error of OutOfRange, which is a clean end.
  void ManagedSession(const std::function<void(TorchSupervisor&)>& body);
  StepResult Run(Trainer& trainer, std::function<torch::Tensor()> loss);
  std::string Save();
  void Stop() { ThrowIfError(supervisor_.Stop()); }

  bool ShouldStop() const { return supervisor_.ShouldStop(); }
  void RequestStop() { supervisor_.RequestStop(); }
  // Everything else: Loop, SummarizeNextStep, queue runners, the coordinator.
  Supervisor& supervisor() { return supervisor_; }

 private:
  Supervisor supervisor_;
};

// Trains by a SyncReplicasOptimizer.
Trainer Synchronous(Replica& replica, SyncReplicasOptimizer& optimizer);

}  // namespace muster
