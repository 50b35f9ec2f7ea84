// RunExperiment: from what the registry has of a run to its ExperimentRun.
#include <fcntl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/acquire_for_run.h"
#include "muster/launch/experiment/experiment_hosts.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/registry/kept_variables.h"

namespace muster {
namespace {

// Fails a run whose file can't be parsed, though it could when it was started: by an older muster, say.
absl::StatusOr<ExperimentEnd> FailBeforeTheStart(Registry& registry, RunRecord run, const absl::Status& why) {
  run.state = RunState::kFailed;
  run.reason = std::string(why.message());
  run.exit_code = 2;
  RETURN_IF_ERROR(registry.SetRun(run));
  return ExperimentEnd{.exit_code = run.exit_code};
}

// Returns the host that alone has what the attempts before have written. Empty where none has, and where the user says
// which host is the first.
std::string HostWithTheOutput(const Home& home, const ExperimentFile& file, const RunRecord& run, bool engine_chooses) {
  const bool is_there = !PosixFileSystem().ReadFile(home.output_mark(run.id)).value_or("").empty();
  return engine_chooses && is_there ? HostBefore(home, run.id, run.attempt, ChiefOfFile(file)) : "";
}

}  // namespace

absl::StatusOr<ExperimentEnd> RunExperiment(const Home& home, Registry& registry, const ExperimentId& id, RunLock lock,
                                            const SupervisorSetting& setting) {
  fcntl(lock.fd(), F_SETFD, FD_CLOEXEC);  // no task may hold it once the supervisor is gone
  ASSIGN_OR_RETURN(RunRecord run, registry.Run(id));
  ASSIGN_OR_RETURN(NewExperiment experiment, registry.Specification(id.number));
  absl::StatusOr<ExperimentFile> file = ParseExperimentFile(experiment.file_text, experiment.file_name);
  if (!file.ok()) return FailBeforeTheStart(registry, std::move(run), file.status());
  if (setting.job.has_value()) experiment.options.hosts.hosts = setting.job->hosts;
  // Another attempt uses the same folder as the one before.
  if (run.output_dir.empty()) run.output_dir = OutputFolder(*file, home, id, /*grid=*/false);
  std::unique_ptr<HeldHosts> held;
  if (experiment.options.hosts.command.has_value()) {
    auto got =
        AcquireForRun({.home = home, .file = *file, .options = experiment.options, .setting = setting}, registry, run);
    RETURN_IF_ERROR(got.status());
    if (*got == nullptr) return ExperimentEnd{.exit_code = run.exit_code};
    held = *std::move(got);
    experiment.options.hosts.hosts = held->hosts();
  }
  absl::StatusOr<HostPlan> hosts =
      PlanHosts(*file, experiment.options, static_cast<int>(id.run),
                HostWithTheOutput(home, *file, run, setting.job.has_value() || held != nullptr));
  if (!hosts.ok()) return FailBeforeTheStart(registry, std::move(run), hosts.status());
  if (held != nullptr) hosts->command = held->ForEngine();
  if (setting.job.has_value()) {
    hosts->muster = setting.muster_command;
    hosts->shared_folder = home.folder(id);
    hosts->in_job = true;
    if (setting.job->left.has_value()) {
      hosts->supervisor = setting.job->left->supervisor;
      hosts->placement = setting.job->left->placement;
    }
  }
  RunOrder order = {.home = home,
                    .run = std::move(run),
                    .file = *std::move(file),
                    .options = experiment.options,
                    .setting = setting,
                    .hosts = *std::move(hosts)};
  if (held != nullptr)
    order.give_back = [&held](const std::function<void(const std::string& line)>& say) { held->GiveBack(say); };
  order.setting.environment = WithKeptVariables(setting.environment, experiment.environment);
  ExperimentRun running(std::move(order), registry);
  experiment = {};  // frees the runs of a grid, which are large
  return running.Run();
}

}  // namespace muster
