// `muster supervise`: the process that sees to an experiment from its start to its end. Started by `muster train` and
// by the supervisor of a grid, not by users: --help doesn't name it.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/experiment/await_room.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/experiment/grid_run.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/jobs/supervise_in_job.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

constexpr char kSuperviseDescription[] = "Supervise an experiment until it has ended (started by muster train)";

struct SuperviseFlags {
  std::string id;
  int lock_fd = -1;
  std::string in_job;   // the engine of whose job this process is; empty: of none
  std::string refused;  // why the job can't have its hosts: nothing is started
};

absl::StatusOr<Home> OpenOwnHome() {
  const auto folder = ReadEnvironment().home;
  if (!folder.has_value()) return absl::InvalidArgumentError("neither MUSTER_HOME nor HOME is set; set one of them");
  return Home::Open(*folder, PosixFileSystem());
}

SupervisorSetting SettingHere(const PrivateFiles& private_files) {
  std::error_code no_proc;
  return {.muster_command = std::filesystem::read_symlink("/proc/self/exe", no_proc).string(),
          .environment = OwnEnvironment(),
          .users_umask = private_files.users_umask()};
}

absl::StatusOr<int> Supervise(const ExperimentId& id, RunLock lock) {
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, OpenOwnHome());
  const SupervisorSetting setting = SettingHere(private_files);
  ASSIGN_OR_RETURN(const auto registry, OpenOnceThereIsRoom(home));
  ASSIGN_OR_RETURN(const RunRecord run, registry->Run(id));
  const bool is_grid = id.run == 0 && run.runs > 0;
  if (is_grid) return RunGrid(home, *registry, id.number, std::move(lock), setting);
  ASSIGN_OR_RETURN(const ExperimentEnd end, RunExperiment(home, *registry, id, std::move(lock), setting));
  return end.exit_code;
}

// The script of the job takes an end without the file for a death, and starts the next supervisor.
absl::StatusOr<int> SuperviseInOwnJob(const ExperimentId& id, JobEngine& engine, const std::string& refused) {
  // One that comes before the run listens is heard then; one that comes after its end changes nothing.
  sigset_t heard_later;
  sigemptyset(&heard_later);
  sigaddset(&heard_later, SIGINT);
  sigaddset(&heard_later, SIGTERM);
  sigprocmask(SIG_BLOCK, &heard_later, nullptr);
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, OpenOwnHome());
  absl::StatusOr<int> code = refused.empty() ? SuperviseInJob(home, id, engine, SettingHere(private_files))
                                             : RefuseInJob(home, id, engine, refused);
  static_cast<void>(ReplaceFile(home.job_over(id), "", Durability::kProcess));
  return code;
}

int SuperviseAndReport(const SuperviseFlags& flags) {
  unsetenv(kDetachedVariable);  // it is this process's alone
  const absl::StatusOr<ExperimentId> id = ExperimentId::Parse(flags.id);
  if (!id.ok()) return UsageError("supervise", id.status());
  const std::unique_ptr<JobEngine> engine = MakeJobEngine(flags.in_job, "", OwnEnvironment());
  if (engine == nullptr && !flags.in_job.empty())
    return UsageError("supervise", absl::InvalidArgumentError(absl::StrCat(
                                       "--in_job ", flags.in_job, ": no engine of jobs has this name; accepted: ",
                                       absl::StrJoin(JobEngineNames(), ", "))));
  if (engine == nullptr && (flags.lock_fd <= 2 || fcntl(flags.lock_fd, F_GETFD) < 0))
    return UsageError("supervise", absl::InvalidArgumentError(absl::StrCat(
                                       "--lock-fd ", flags.lock_fd, ": accepted is the open file of the run's lock; ",
                                       "muster train starts supervisors")));
  const absl::StatusOr<int> code = engine != nullptr ? SuperviseInOwnJob(*id, *engine, flags.refused)
                                                     : Supervise(*id, RunLock::Adopt(flags.lock_fd));
  if (code.ok()) return *code;
  if (absl::IsCancelled(code.status())) return 0;
  const std::string when = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", RealClock().Now(), absl::UTCTimeZone());
  std::fprintf(stderr, "%s muster supervise %s: %s\n", when.c_str(), flags.id.c_str(),
               std::string(code.status().message()).c_str());
  return 1;
}

}  // namespace

void AddSuperviseCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<SuperviseFlags>();
  CLI::App* command = app.add_subcommand("supervise", kSuperviseDescription);
  command->group("");  // not in --help
  command->add_option("ID", flags->id, "Experiment, or run of a grid")->type_name("")->required();
  command->add_option("--lock-fd", flags->lock_fd, "Open descriptor of its lock, held")->type_name("N");
  command->add_option("--in_job", flags->in_job, "In the job of this engine that holds it: its script calls this")
      ->type_name("ENGINE");
  command
      ->add_option("--refused", flags->refused,
                   "With --in_job: why the job can't have its hosts; the experiment ends with it")
      ->type_name("WHY");
  command->callback([flags, &exit_code] { exit_code = SuperviseAndReport(*flags); });
}

}  // namespace muster
