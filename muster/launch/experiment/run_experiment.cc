#include "muster/launch/experiment/run_experiment.h"

#include <fcntl.h>

#include <memory>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {
namespace {

// Fails a run whose file can't be parsed, though it could when it was started: by an older muster, say.
absl::StatusOr<int> FailBeforeTheStart(Registry& registry, RunRecord run, const absl::Status& why) {
  run.state = RunState::kFailed;
  run.reason = std::string(why.message());
  run.exit_code = 2;
  RETURN_IF_ERROR(registry.SetRun(run));
  return run.exit_code;
}

}  // namespace

absl::StatusOr<int> RunExperiment(const Home& home, const ExperimentId& id, RunLock lock,
                                  const std::string& muster_command) {
  fcntl(lock.fd(), F_SETFD, FD_CLOEXEC);  // no task may hold it once the supervisor is gone
  ASSIGN_OR_RETURN(const std::unique_ptr<Registry> registry, Registry::Open(home, RealClock()));
  ASSIGN_OR_RETURN(RunRecord run, registry->Run(id));
  ASSIGN_OR_RETURN(NewExperiment experiment, registry->Specification(id.number));
  absl::StatusOr<ExperimentFile> file = ParseExperimentFile(experiment.file_text, experiment.file_name);
  if (!file.ok()) return FailBeforeTheStart(*registry, std::move(run), file.status());
  // Another attempt uses the same folder as the one before.
  if (run.output_dir.empty()) run.output_dir = OutputFolder(*file, home, id, /*grid=*/false);
  ExperimentRun running({.home = home,
                         .run = std::move(run),
                         .file = *std::move(file),
                         .options = experiment.options,
                         .environment = std::move(experiment.environment),
                         .muster_command = muster_command},
                        *registry);
  experiment = {};  // frees the runs of a grid, which are large
  return running.Run();
}

}  // namespace muster
