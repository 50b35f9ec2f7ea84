#include "bench/support/past_experiments.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/run_lock.h"

namespace muster::bench {
namespace {

constexpr int kProjects = 10;
// Like an ordinary shell's: some 3 KB.
constexpr int kVariables = 40;
constexpr int kVariableBytes = 60;

// Every tenth experiment belongs to `project`.
NewExperiment PastExperiment(const std::string& project, int number) {
  NewExperiment experiment;
  experiment.project = number % kProjects == 0 ? project : absl::StrCat(project, "-", number % kProjects);
  experiment.folder = absl::StrCat("/projects/", experiment.project);
  experiment.file_name = "muster.yml";
  experiment.file_text = absl::StrCat("project: ", experiment.project,
                                      "\ntrain:\n  framework: tensorflow\n  tensorflow:\n    distributed: {worker: 3, "
                                      "ps: 1}\n  parameters: {learning-rate: 0.1, layers: 4}\n  run: python train.py "
                                      "--learning-rate {{ learning-rate }} --layers {{ layers }}\n");
  experiment.tree = std::string(64, 'a');
  experiment.runs = {{{"learning-rate", absl::StrCat("0.", number)}, {"layers", "4"}}};
  for (int i = 0; i < kVariables; ++i)
    experiment.environment.push_back(absl::StrCat("VARIABLE_", i, "=", std::string(kVariableBytes, 'v')));
  return experiment;
}

std::vector<TaskRecord> EndedTasks(bool failed) {
  std::vector<TaskRecord> tasks;
  for (int i = 0; i < kTasksOfPastExperiment; ++i) {
    TaskRecord task;
    task.task = i == 0 ? TaskId{kPsJob, 0} : i == 1 ? TaskId{kMasterJob, 0} : TaskId{kWorkerJob, i - 2};
    task.state = failed ? RunState::kFailed : RunState::kFinished;
    task.exit = ExitStatus{.code = failed ? 1 : 0};
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// `written`: the home of the registry; `home`: where it will be.
absl::Status WriteOne(Registry& registry, const Home& written, const Home& home, const std::string& project,
                      int number) {
  const bool failed = number % 7 == 0;
  ASSIGN_OR_RETURN(const int64_t created, registry.Create(PastExperiment(project, number)));
  const ExperimentId id{.number = created};
  RETURN_IF_ERROR(RunLock::Take(written.lock(id)).status());  // as a supervisor that has released it
  ASSIGN_OR_RETURN(RunRecord run, registry.Run(id));
  run.state = failed ? RunState::kFailed : RunState::kFinished;
  run.reason = failed ? "worker.2 exited with 1" : "";
  run.exit_code = failed ? 1 : 0;
  run.output_dir = home.output(id);
  return registry.SetRun(run, EndedTasks(failed));
}

absl::Status CopyAll(const Home& from, const Home& to) {
  std::error_code error;
  std::filesystem::copy(from.path(), to.path(), std::filesystem::copy_options::recursive, error);
  return error ? absl::ErrnoToStatus(error.value(), absl::StrCat("cannot copy ", from.path())) : absl::OkStatus();
}

}  // namespace

absl::Status WritePastExperiments(const Home& home, const std::string& project, int count) {
  FileSystem& files = PosixFileSystem();
  RETURN_IF_ERROR(files.CreateDirectory(home.path()));
  const Home fast(absl::StrCat("/dev/shm/bench_experiments.", getpid()));
  const bool has_memory = files.CreateDirectory(fast.path()).ok();
  absl::Status written;
  {
    auto registry = Registry::Open(has_memory ? fast : home, RealClock());
    written = registry.status();
    for (int i = 1; i <= count && written.ok(); ++i)
      written = WriteOne(**registry, has_memory ? fast : home, home, project, i);
  }
  if (!has_memory) return written;
  if (written.ok()) written = CopyAll(fast, home);
  written.Update(files.RemoveTree(fast.path()));
  return written;
}

}  // namespace muster::bench
