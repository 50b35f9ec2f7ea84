// The session objects beside MonitoredTrainingSession, for torch programs: SingularMonitoredSession, Supervisor's
// façade, SyncReplicasOptimizer's trainer. docs/sessions.md says which program uses which. Thin, like training.h. Used
// by one thread.
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
  std::string checkpoint_dir;  // restored from; only a hook saves to it
  double stop_grace_period_secs = 120;
  std::string checkpoint_filename_with_path;  // instead of a checkpoint_dir; see SessionCreatorOptions
};

// Always acts as the chief, and never recovers: a ps that has lost the model is an Error (exit code 138).
class SingularMonitoredSession final : public MonitoredSession {
 public:
  explicit SingularMonitoredSession(Server& server, std::vector<std::shared_ptr<SessionHook>> hooks = {},
                                    SingularMonitoredSessionOptions options = {});
  RawSession raw_session() { return RawSession(session()); }
};

// A Supervisor of this process's server, and its steps. Throws Error.
class TorchSupervisor {
 public:
  TorchSupervisor(Server& server, const SupervisorOptions& options)
      : supervisor_(MakeTorchEnvironment(server, options.config), options) {}

  void PrepareOrWaitForSession(bool start_standard_services = true) {
    ThrowIfError(supervisor_.PrepareOrWaitForSession(start_standard_services));
  }
  // Starts the chief's threads of summaries and checkpoints, if PrepareOrWaitForSession was told not to.
  void StartStandardServices() { ThrowIfError(supervisor_.StartStandardServices()); }
  // Calls `body` between the start and the stop. An exception of `body` stops every thread and is then rethrown, unless
  // it is an Error of OutOfRange, which is a clean end.
  void ManagedSession(const std::function<void(TorchSupervisor&)>& body);
  StepResult Run(Trainer& trainer, std::function<torch::Tensor()> loss);
  // As MonitoredSession::Fetch.
  void Fetch(const std::function<void()>& fetch) {
    ThrowIfError(supervisor_.Fetch([&fetch] { return CallFetch(fetch); }));
  }
  std::string Save();
  void Stop() { ThrowIfError(supervisor_.Stop()); }

  bool ShouldStop() const { return supervisor_.ShouldStop(); }
  void RequestStop() { supervisor_.RequestStop(); }
  // For everything else: Loop, SummarizeNextStep, queue runners, the coordinator.
  Supervisor& supervisor() { return supervisor_; }

 private:
  Supervisor supervisor_;
};

// Makes the trainer of a SyncReplicasOptimizer.
Trainer Synchronous(Replica& replica, SyncReplicasOptimizer& optimizer);

}  // namespace muster
