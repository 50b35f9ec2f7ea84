#include "muster/torch_bridge/facade/sessions.h"

#include <exception>
#include <utility>

namespace muster {
namespace {

SessionOptions Singular(SingularMonitoredSessionOptions options) {
  return {.stop_grace_period_secs = options.stop_grace_period_secs,
          .creator = std::make_shared<ChiefSessionCreator>(
              SessionCreatorOptions{.scaffold = std::move(options.scaffold),
                                    .master = std::move(options.master),
                                    .config = std::move(options.config),
                                    .checkpoint_dir = std::move(options.checkpoint_dir),
                                    .checkpoint_filename_with_path = std::move(options.checkpoint_filename_with_path)}),
          .default_hooks = false,
          .recovers = false};
}

}  // namespace

SingularMonitoredSession::SingularMonitoredSession(Server& server, std::vector<std::shared_ptr<SessionHook>> hooks,
                                                   SingularMonitoredSessionOptions options)
    : MonitoredSession(server, Singular(std::move(options)), std::move(hooks)) {}

void TorchSupervisor::ManagedSession(const std::function<void(TorchSupervisor&)>& body) {
  std::exception_ptr thrown;
  const absl::Status status = supervisor_.ManagedSession([&] {
    try {
      body(*this);
    } catch (...) {
      thrown = std::current_exception();
      return ErrorOf(thrown);
    }
    return absl::OkStatus();
  });
  if (!status.ok() && thrown && status == ErrorOf(thrown)) std::rethrow_exception(thrown);
  ThrowIfError(status);
}

StepResult TorchSupervisor::Run(Trainer& trainer, std::function<torch::Tensor()> loss) {
  const LossScope scope(trainer, supervisor_.algorithm(), std::move(loss));
  return ValueOrThrow(supervisor_.Run());
}

std::string TorchSupervisor::Save() { return ValueOrThrow(supervisor_.Save()); }

Trainer Synchronous(Replica& replica, SyncReplicasOptimizer& optimizer) {
  const TaskConfig& task = replica.server().task();
  WarnOfMissingReplicas(optimizer.total_num_replicas(), task.distributed() ? task.worker_tasks().size() : 1);
  return Trainer(replica, optimizer.Apply(replica.source(), replica.placement()));
}

}  // namespace muster
