// `muster home`: both sides of experiments whose job shares no folder with their submitter (docs/far_homes.md). Run by
// muster and by the scripts of jobs, not by users: --help doesn't name it.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/standard_streams.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/parcel_receiver.h"
#include "muster/launch/far_home/parts_answer.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/jobs/job_collector.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

constexpr char kHomeDescription[] =
    "Bring an experiment into its job and back (run by muster, and by the job's script)";
constexpr size_t kMostHomeInput = kMostFarMessage + 256;
constexpr int kUsualPatienceSeconds = 600;
constexpr int kUsualKeepSeconds = 3600;

struct HomeFlags {
  std::string id;
  std::string job;
  int seconds = 0;
  int lock_fd = -1;
};

absl::StatusOr<Home> HomeHere() {
  const auto folder = ReadEnvironment().home;
  if (!folder.has_value()) return absl::InvalidArgumentError("neither MUSTER_HOME nor HOME is set; set one of them");
  return Home::Open(*folder, PosixFileSystem());
}

void Pause(absl::Duration time) { absl::SleepFor(time); }

// Answers the question on stdin.
absl::Status AnswerQuestion(const std::string& verb, const std::string& id) {
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, HomeHere());
  std::string input;
  for (;;) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFromStdin());
    if (bytes.empty() || input.size() > kMostHomeInput) break;
    input += bytes;
  }
  return WriteToStdout(AnswerFar(home, verb, id, input));
}

absl::Status Await(const HomeFlags& flags) {
  ASSIGN_OR_RETURN(const ExperimentId id, ExperimentId::Parse(flags.id));
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, HomeHere());
  return AwaitParcel(home, id, flags.job, absl::Seconds(flags.seconds), RealClock(), Pause);
}

absl::Status LingerInJob(const HomeFlags& flags) {
  ASSIGN_OR_RETURN(const ExperimentId id, ExperimentId::Parse(flags.id));
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, HomeHere());
  if (!Linger(home, id, flags.job, absl::Seconds(flags.seconds), RealClock(), Pause))
    std::fprintf(stderr, "muster: experiment %s: nobody has fetched all of it within %d s: what is left is lost\n",
                 flags.id.c_str(), flags.seconds);
  return absl::OkStatus();
}

absl::Status Collect(const HomeFlags& flags) {
  unsetenv(kDetachedVariable);  // it is this process's alone
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGINT);
  sigaddset(&ending, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &ending, nullptr);
  ASSIGN_OR_RETURN(const ExperimentId id, ExperimentId::Parse(flags.id));
  if (flags.lock_fd <= 2 || fcntl(flags.lock_fd, F_GETFD) < 0)
    return absl::InvalidArgumentError(
        "--lock-fd: accepted is the open file of the collector's lock; muster train "
        "starts collectors");
  fcntl(flags.lock_fd, F_SETFD, FD_CLOEXEC);
  const RunLock lock = RunLock::Adopt(flags.lock_fd);
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, HomeHere());
  ASSIGN_OR_RETURN(const auto registry, Registry::Open(home, RealClock(), ToRead::kOpen));
  JobWatch jobs(home, *registry, [](const std::string& name, const std::string& at) {
    return MakeJobEngine(name, at, OwnEnvironment());
  });
  jobs.LeaveFetching();
  const auto say = [](const std::string& line) {
    std::fprintf(stderr, "%s %s\n", ShownTime(RealClock().Now()).c_str(), line.c_str());
  };
  JobCollector({.home = home, .registry = *registry, .jobs = jobs, .clock = RealClock(), .say = say}, id).Run(Pause);
  return absl::OkStatus();
}

// Has the collector fetch all output at the end, whatever its size.
absl::Status WantAllOutput(const HomeFlags& flags) {
  ASSIGN_OR_RETURN(const ExperimentId id, ExperimentId::Parse(flags.id));
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(const Home home, HomeHere());
  if (!IsFar(home, id))
    return absl::FailedPreconditionError(absl::StrCat(
        "experiment ", flags.id, " has no job from which something could be fetched: it has ended and was fetched, or ",
        "shares this folder"));
  RETURN_IF_ERROR(ReplaceFile(FarFile(home, id, kFarAllName), "", Durability::kProcess));
  WantFar(home, id);
  std::printf("all output of experiment %s is fetched when it has ended, whatever its size\n", flags.id.c_str());
  return absl::OkStatus();
}

// Adds a verb about an experiment.
CLI::App* AddVerb(CLI::App& home, const char* verb, const char* description, const std::shared_ptr<HomeFlags>& flags,
                  int& exit_code, absl::Status (*act)(const HomeFlags&)) {
  CLI::App* command = home.add_subcommand(verb, description);
  command->add_option("ID", flags->id, "Experiment, or run of a grid")->type_name("")->required();
  command->callback([flags, &exit_code, act, verb] {
    const absl::Status done = act(*flags);
    exit_code = done.ok() ? 0 : ReportError(absl::StrCat("home ", verb), done);
  });
  return command;
}

void AddSeconds(CLI::App* command, const std::shared_ptr<HomeFlags>& flags, const char* name, const char* description,
                int usual) {
  command
      ->add_option_function<int>(
          name, [flags](const int& seconds) { flags->seconds = seconds; }, description)
      ->type_name("SECONDS")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
  command->preparse_callback([flags, usual](size_t) { flags->seconds = usual; });
}

}  // namespace

void AddHomeCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<HomeFlags>();
  CLI::App* command = app.add_subcommand("home", kHomeDescription);
  command->group("");  // not in --help
  command->require_subcommand(1);
  AddVerb(*command, "receive", "In the job: take a piece of the experiment from stdin", flags, exit_code,
          [](const HomeFlags& of) { return AnswerQuestion("receive", of.id); });
  AddVerb(*command, "parts", "In the job: answer what is new; the question is on stdin", flags, exit_code,
          [](const HomeFlags& of) { return AnswerQuestion("parts", of.id); });
  AddVerb(*command, "outputs", "In the job: answer what is in OUTPUT_DIR; the question is on stdin", flags, exit_code,
          [](const HomeFlags& of) { return AnswerQuestion("outputs", of.id); });
  CLI::App* await =
      AddVerb(*command, "await", "In the job: wait until the experiment has come", flags, exit_code, Await);
  await->add_option("--job", flags->job, "The job, as its engine names it")->type_name("JOB");
  AddSeconds(await, flags, "--patience", "Fail when nothing new has come for so long (default 600)",
             kUsualPatienceSeconds);
  CLI::App* linger =
      AddVerb(*command, "linger", "In the job: wait until all has been fetched", flags, exit_code, LingerInJob);
  linger->add_option("--job", flags->job, "The job, as its engine names it")->type_name("JOB");
  AddSeconds(linger, flags, "--keep", "Wait no longer (default 3600)", kUsualKeepSeconds);
  CLI::App* collect = AddVerb(*command, "collect", "Send an experiment into its job and fetch what it writes", flags,
                              exit_code, Collect);
  collect->add_option("--lock-fd", flags->lock_fd, "Open descriptor of the collector's lock, held")->type_name("N");
  AddVerb(*command, "fetch", "Fetch all output of an experiment when it has ended, whatever its size", flags, exit_code,
          WantAllOutput);
}

}  // namespace muster
