// `muster train`: runs what muster.yml says, one experiment or a grid, and shows its logs; Ctrl-C leaves it to itself.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/check_experiment.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/experiment/plan_text.h"
#include "apps/muster/experiment/submit_experiment.h"
#include "apps/muster/experiment/train_elsewhere.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/hosts/remote_command.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/shown_host.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/jobs/submit_job.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/spec/go_on_command.h"
#include "muster/launch/system/shell_word.h"
#include "muster/launch/task_run/code_copy.h"

namespace muster {
namespace {

constexpr char kTrainDescription[] = "Run the experiment or grid of muster.yml and show its logs";

constexpr char kTrainFooter[] = R"(
Copies the folder's files, so that later edits don't change what runs, gives the experiment an id, starts it under a
supervisor of its own and shows the output of all its tasks. Ctrl-C only stops showing it: the experiment keeps running,
even when the terminal is closed. `muster kill` ends it. So nohup isn't needed: the end of the terminal ends only this
command, and under nohup it goes on showing the output, in nohup.out. The tasks ignore SIGHUP in both cases.
--param replaces a parameter of the file by one value, or by several as name=[a,b,c]. Parameters with several values
make a grid: one run per combination, of which the file's `concurrency` run at a time, with a table of results at the
end. --random N runs only N of the combinations, chosen at random, or N random values between a range's bounds.
--experiment ID starts another attempt of an experiment that has ended, with the same id and OUTPUT_DIR, so that a
program that finds its checkpoint there resumes; of a grid, the runs that haven't finished. It uses the present file and code, and the old parameters unless
--param changes them; it runs on the hosts of before unless flags or the file say otherwise.
--hosts, --host_file, or hosts in the file: the tasks run on hosts that your ssh reaches without a password. muster and
the code are copied there, where a host doesn't see them; nothing has to be installed but what the program needs. The
supervisor stays on this machine: closing the lid of a laptop ends the tasks when --grace is over. With --supervisor HOST
it is HOST that starts, watches and restarts them, by its own ssh, and this machine isn't needed any more: the experiment
is HOST:ID for all commands, as in `muster logs HOST:4 -f`, and its files are HOST's. Where a host doesn't
see OUTPUT_DIR, its tasks have one of their own there, and what they write comes here when the run has ended. Nothing of your
environment travels but what the file's env sets. docs/clusters.md has more.
--on slurm, or on: slurm in the file: a job of Slurm has the experiment, its supervisor included. --slurm nodes=2, or slurm
in the file, says what sbatch is asked for besides what the tasks state; the script is experiments/ID/job.sh in MUSTER_HOME,
which the nodes must see. docs/slurm.md has more.
--on ray, or on: ray: a job of Ray has the experiment, on as many of its nodes as --ray nodes=N says; docs/ray.md has more.
--on spark, or on: spark: an application of Spark at --address has the experiment, whose driver and supervisor run on this
machine; --spark nodes=N says in how many of its tasks. docs/spark.md has more.
--on command, or on: command: commands of your own get the hosts, lead to them and give them back: hosts_by in the file, or
--hosts_by FILE; --hosts N says how many. docs/command_engine.md has more.
--on kubernetes, or on: kubernetes: pods have the experiment, of the image that kubernetes: in the file or --kubernetes
image=IMAGE names, made by your own kubectl; docs/kubernetes.md has more.
--dry-run shows how the file was understood: the commands of each role, its resources, the names of the variables, the
parameters, the number of runs, and of each setting the value and where it comes from: a flag wins over the environment,
the environment over the file, the file over the default. What keeps it from running on this machine, or what
the engine says against it, follows on stderr, with exit code 2.

Examples:
  muster train --dry-run
  muster train
  muster train --param num-layers=4 --param learning-rate=0.1
  muster train --param learning-rate=[0.1,0.01] --metric test_accuracy
  muster train --random 20 --seed 1 --detach
  muster train --experiment 4
  muster train -f other.yml --no-gpus --no-venv
  muster train --hosts h1,h2:4
  muster train --on slurm --slurm nodes=2 --slurm time=2:00:00
  muster train --on ray --ray nodes=2 --ray address=http://head:8265
  muster train --on spark --address spark://head:7077 --spark nodes=2
  muster train --on command --hosts_by pbs.yml --hosts 2
  muster train --on kubernetes --kubernetes image=registry.example/team/train:1 --kubernetes nodes=2
  muster train --on local              although the file has hosts
  muster train --supervisor gpu1       on gpu1, also when this machine is off

Exit codes: 0 finished, or still running after Ctrl-C or --detach; the chief's if it failed, 1
if nobody knows it, 137 if what ran it was killed; 130 if somebody killed it; 138 if the connection to the host that supervises
broke, where it goes on; 2 wrong file or usage, this machine has less than the file asks for, or the first node of its
job sees no muster or no MUSTER_HOME: nothing was started.)";

struct TrainFlags {
  std::string file;
  std::vector<std::string> parameters;
  std::string random, seed;
  std::string experiment;
  std::optional<std::string> stop_grace;  // 30
  bool dry_run = false;
  HostFlags hosts;
  std::string supervisor;  // empty: as the file says
  SubmitOptions options;
  ShowFlags show;
};

// The values of --random and --seed; nullopt: all combinations.
struct Draw {
  int count = 0;
  uint64_t seed = 0;
};

absl::StatusOr<std::optional<Draw>> ParseDraw(const TrainFlags& flags) {
  if (flags.random.empty()) {
    if (flags.seed.empty()) return std::nullopt;
    return absl::InvalidArgumentError("--seed: accepted with --random only");
  }
  Draw draw;
  if (!absl::SimpleAtoi(flags.random, &draw.count) || draw.count < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("--random '", flags.random, "': accepted is a whole number of runs from 1"));
  if (!flags.seed.empty() && !absl::SimpleAtoi(flags.seed, &draw.seed))
    return absl::InvalidArgumentError(absl::StrCat("--seed '", flags.seed, "': accepted is a whole number from 0"));
  if (!flags.experiment.empty())
    return absl::InvalidArgumentError("--random: accepted without --experiment, whose parameters are fixed already");
  return draw;
}

absl::StatusOr<std::vector<ParameterValues>> NewRuns(const ExperimentFile& file, const TrainFlags& flags,
                                                     const std::optional<Draw>& draw) {
  ASSIGN_OR_RETURN(const std::vector<ParameterSpec> parameters, WithOverrides(file.parameters, flags.parameters));
  return draw.has_value() ? RandomCombinations(parameters, draw->count, draw->seed) : AllCombinations(parameters);
}

// Returns the values that a run had, with changes from the command line and the file's parameters that it didn't have.
absl::StatusOr<ParameterValues> OldRun(const ParameterValues& old, const ExperimentFile& file,
                                       const TrainFlags& flags) {
  std::vector<ParameterSpec> parameters;
  for (const ParameterSpec& parameter : file.parameters)
    if (!old.contains(parameter.name)) parameters.push_back(parameter);
  for (const auto& [name, value] : old) parameters.push_back({.name = name, .values = {value}});
  ASSIGN_OR_RETURN(parameters, WithOverrides(std::move(parameters), flags.parameters));
  for (const ParameterSpec& parameter : parameters) {
    if (parameter.values.size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("parameter '", parameter.name, "' has ", parameter.values.size(),
                                                     " values; accepted with --experiment is one: --param ",
                                                     parameter.name, "=VALUE"));
  }
  ASSIGN_OR_RETURN(const std::vector<ParameterValues> runs, AllCombinations(parameters));
  return runs.front();
}

// Returns the experiment or run that --experiment names. It must have ended and belong to the file's project.
absl::StatusOr<RunRecord> FormerAttempt(Registry& registry, const FolderFile& here, const std::string& text) {
  ASSIGN_OR_RETURN(const ExperimentName name, ExperimentName::Parse(text));
  if (name.task.has_value())
    return absl::InvalidArgumentError(
        absl::StrCat("--experiment ", text, ": a single task can't be restarted; accepted: ", ShownId(name.id)));
  ASSIGN_OR_RETURN(RunRecord run, registry.Run(name.id));
  ASSIGN_OR_RETURN(const RunRecord whole, registry.Run({.number = name.id.number}));
  const RunRecord& open = HasEnded(run.state) ? whole : run;
  if (!HasEnded(open.state))
    return absl::FailedPreconditionError(absl::StrCat("experiment ", ShownId(open.id), " is still running (",
                                                      std::string(Name(open.state)), "): muster kill ",
                                                      ShownId(open.id), " ends it"));
  if (run.project == here.file.project) return run;
  ASSIGN_OR_RETURN(const NewExperiment its, registry.Specification(name.id.number));
  const bool is_same_file = its.folder == here.folder && its.file_name == here.name;
  const std::string file = its.folder == here.folder ? its.file_name : JoinPath(its.folder, its.file_name);
  return absl::InvalidArgumentError(
      absl::StrCat("--experiment ", text, ": it belongs to project ", run.project, ", but ", here.name,
                   " here to project ", here.file.project,
                   is_same_file ? "" : absl::StrCat("; with its own file: ", GoOnCommand(ShownId(name.id), file))));
}

absl::StatusOr<std::vector<ParameterValues>> RunsOfAgain(Registry& registry, const RunRecord& former,
                                                         const ExperimentFile& file, const TrainFlags& flags) {
  std::vector<ParameterValues> old = {former.parameters};
  if (former.runs > 0) {
    ASSIGN_OR_RETURN(const NewExperiment specification, registry.Specification(former.id.number));
    old = specification.runs;
  }
  std::vector<ParameterValues> runs;
  for (const ParameterValues& values : old) {
    ASSIGN_OR_RETURN(runs.emplace_back(), OldRun(values, file, flags));
  }
  return runs;
}

// Returns the command as it was given, without --param and what only says how the experiment is shown.
std::string CommandGiven(const TrainFlags& flags) {
  std::string command = "muster train";
  const auto add = [&command](const char* flag, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&command, " ", flag, " ", ShellWord(value));
  };
  add("-f", flags.file);
  add("--experiment", flags.experiment);
  add("--random", flags.random);
  add("--seed", flags.seed);
  for (const auto& [key, value] : GivenHostFlags(flags.hosts)) add(absl::StrCat("--", key).c_str(), value);
  for (const std::string& one : flags.hosts.slurm) add("--slurm", one);
  for (const std::string& one : flags.hosts.ray) add("--ray", one);
  for (const std::string& one : flags.hosts.kubernetes) add("--kubernetes", one);
  for (const std::string& one : flags.hosts.spark) add("--spark", one);
  add("--address", flags.hosts.address);
  add("--code_limit", flags.hosts.code_limit);
  if (flags.options.no_gpus) absl::StrAppend(&command, " --no-gpus");
  if (flags.options.no_venv) absl::StrAppend(&command, " --no-venv");
  return command;
}

// Returns what flags say of keys of the file, for the table of --dry-run.
std::map<std::string, std::string> GivenKeys(const TrainFlags& flags, const ExperimentFile& file) {
  std::map<std::string, std::string> given = GivenHostFlags(flags.hosts);
  // A supervisor elsewhere has been told to do it itself; to the user it is that host.
  const std::string& shown = ShownHost();
  if (shown.empty() && !flags.supervisor.empty()) given["supervisor"] = flags.supervisor;
  if (!shown.empty() && shown != file.hosts.supervisor) given["supervisor"] = shown;
  return given;
}

// Returns what flags say of the job, "NAME=VALUE" each. Those of other engines than the one that has it are refused.
std::vector<std::string> GivenOfJob(const HostFlags& flags) {
  std::vector<std::string> given;
  for (const auto* values : {&flags.slurm, &flags.ray, &flags.spark, &flags.kubernetes})
    given.insert(given.end(), values->begin(), values->end());
  if (!flags.address.empty()) given.push_back(absl::StrCat("address=", flags.address));
  return given;
}

// Returns the host that supervises the experiment; "" if this machine does. An experiment that is named with a host is
// that host's.
absl::StatusOr<std::string> SupervisorOf(const TrainFlags& flags, const ExperimentFile& file) {
  const std::optional<RemoteName> former = ParseRemoteName(flags.experiment);
  std::string host = former.has_value() ? former->host : file.hosts.supervisor;
  if (!flags.supervisor.empty()) host = flags.supervisor;
  if (host == kSupervisorHere) host.clear();
  if (former.has_value() && former->name.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("--experiment ", flags.experiment, ": which one? accepted: ", former->host, ":ID"));
  if (former.has_value() && former->host != host)
    return absl::InvalidArgumentError(absl::StrCat("--experiment ", flags.experiment, " is ", former->host,
                                                   "'s; accepted without --supervisor ", flags.supervisor));
  if (!host.empty() && !flags.experiment.empty() && !former.has_value())
    return absl::InvalidArgumentError(absl::StrCat("--experiment ", flags.experiment, " is this machine's, and ", host,
                                                   " is to supervise; accepted: --experiment ", host, ":",
                                                   flags.experiment, ", or --supervisor here"));
  if (!host.empty() && !ParseRemoteName(absl::StrCat(host, ":")).has_value())
    return absl::InvalidArgumentError(absl::StrCat("supervisor '", host,
                                                   "': accepted is here, or a host by a name of letters, digits, '.', "
                                                   "'-' and '_', as USER@NAME or NAME; ~/.ssh/config gives names"));
  return host;
}

// What the other host is asked for is checked there, where it runs.
absl::StatusOr<int> TrainUnder(const std::string& host, const TrainFlags& flags, const FolderFile& folder) {
  const std::vector<std::string> left_out = {ReadEnvironment().home.value_or("")};
  RETURN_IF_ERROR(CodeForHosts(flags.hosts, folder.folder, left_out).status());
  TrainElsewhere train{.host = host,
                       .folder = folder.folder,
                       .left_out = left_out,
                       .words = {"-f", folder.name},
                       .dry_run = flags.dry_run,
                       .show = flags.show};
  train.ssh_config = flags.hosts.ssh_config;
  if (train.ssh_config.empty() && !folder.file.hosts.ssh_config.empty())
    train.ssh_config = (std::filesystem::path(folder.folder) / folder.file.hosts.ssh_config).string();
  const auto add = [&train](const std::string& flag, const std::string& value) {
    if (!value.empty()) train.words.push_back(absl::StrCat(flag, "=", value));
  };
  for (const std::string& parameter : flags.parameters) add("--param", parameter);
  const std::optional<RemoteName> former = ParseRemoteName(flags.experiment);
  add("--experiment", former.has_value() ? former->name : flags.experiment);
  add("--random", flags.random);
  add("--seed", flags.seed);
  add("--stop-grace", flags.stop_grace.value_or(""));
  add("--metric", flags.show.metric);
  HostFlags hosts = flags.hosts;
  hosts.ssh_config.clear();  // for the way from here to there
  if (!hosts.host_file.empty()) {
    ASSIGN_OR_RETURN(hosts.host_file, PathInFolder("--host_file", hosts.host_file, folder.folder));
  }
  if (!hosts.hosts_by.empty()) {
    ASSIGN_OR_RETURN(hosts.hosts_by, PathInFolder("--hosts_by", hosts.hosts_by, folder.folder));
  }
  for (const auto& [key, value] : GivenHostFlags(hosts)) add(absl::StrCat("--", key), value);
  for (const std::string& one : hosts.slurm) add("--slurm", one);
  for (const std::string& one : hosts.ray) add("--ray", one);
  for (const std::string& one : hosts.kubernetes) add("--kubernetes", one);
  for (const std::string& one : hosts.spark) add("--spark", one);
  add("--address", hosts.address);
  add("--code_limit", hosts.code_limit);
  if (flags.options.no_gpus) train.words.emplace_back("--no-gpus");
  if (flags.options.no_venv) train.words.emplace_back("--no-venv");
  return TrainOnOtherHost(train);
}

// Reads --stop-grace, and returns what is wrong with the flags among each other.
absl::Status CheckFlags(TrainFlags& flags) {
  int& stop_grace = flags.options.stop_grace_seconds;
  if (flags.stop_grace.has_value() && (!absl::SimpleAtoi(*flags.stop_grace, &stop_grace) || stop_grace < 0))
    return absl::InvalidArgumentError(
        absl::StrCat("--stop-grace '", *flags.stop_grace, "': accepted is a whole number of seconds from 0"));
  if (!flags.dry_run) return absl::OkStatus();
  if (!flags.experiment.empty())
    return absl::InvalidArgumentError("--dry-run: accepted without --experiment, whose parameters are fixed already");
  if (flags.show.json) return absl::InvalidArgumentError("--dry-run: accepted without --json; it prints text");
  return absl::OkStatus();
}

// Another attempt keeps the values of the first one, even if the file has changed.
void WarnOfOldValues(const ExperimentFile& file, const std::vector<ParameterValues>& runs, const TrainFlags& flags) {
  for (const ParameterSpec& parameter : file.parameters) {
    const auto is_given = [&](const std::string& text) { return text.starts_with(parameter.name + "="); };
    if (parameter.range.has_value() || std::any_of(flags.parameters.begin(), flags.parameters.end(), is_given))
      continue;
    const std::set<std::string> now(parameter.values.begin(), parameter.values.end());
    for (const ParameterValues& values : runs) {
      const auto old = values.find(parameter.name);
      if (old == values.end() || now.contains(old->second)) continue;
      std::fprintf(stderr, "muster train: %s is %s as before, not %s as in %s now; --param %s=VALUE changes it\n",
                   parameter.name.c_str(), old->second.c_str(), absl::StrJoin(parameter.values, ", ").c_str(),
                   file.name.c_str(), parameter.name.c_str());
      break;
    }
  }
}

// `before`: those of the attempt before, which count where neither flags nor the file say anything: what it has written
// is there.
absl::StatusOr<HostSetting> HostsToUse(const HostFlags& flags, const FolderFile& folder, const HostSetting& before) {
  ASSIGN_OR_RETURN(HostSetting hosts, HostSettingOf(flags, folder.file.hosts, folder.folder));
  if (hosts.is_elsewhere() || !flags.on.empty() || !folder.file.hosts.on.empty()) return hosts;
  HostSetting again = before;
  if (hosts.ports.has_value()) again.ports = hosts.ports;
  return again;
}

// Shows what the engine would be asked for, and what it says to that.
absl::StatusOr<int> ShowScript(const ExperimentFile& file, const SubmitOptions& options) {
  const PrivateFiles private_files;
  JobsOrder order{.home = Home(ReadEnvironment().home.value_or("")),
                  .muster = OwnProgram(),
                  .users_umask = private_files.users_umask(),
                  .file = file};
  order.experiment.project = file.project;
  order.experiment.options = options;
  ASSIGN_OR_RETURN(const std::unique_ptr<JobEngine> engine, JobEngineOf(options.hosts, OwnEnvironment()));
  ASSIGN_OR_RETURN(const std::string script, ScriptOfJob(*engine, order, {.number = 1}, "", 0));
  std::printf("what %s is given (as for experiment 1):\n%s", engine->title().c_str(), script.c_str());
  const auto words = engine->WouldTake(script);
  if (!words.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("it can't run as it is: ", engine->title(), " says: ", std::string(words.status().message())));
  std::printf("\n%s says: %s\n", engine->title().c_str(), words->c_str());
  return 0;
}

// Returns whether the hosts get a copy of the code, as they don't see this machine's disks.
bool GetsCode(const HostSetting& hosts) {
  return !hosts.hosts.empty() || hosts.command.has_value() || hosts.ray.has_value() || hosts.spark.has_value() ||
         hosts.kubernetes.has_value();
}

// Returns what is wrong with the code that goes to each host. A dry run shows it.
absl::Status CheckCode(const TrainFlags& flags, const FolderFile& folder) {
  if (!GetsCode(flags.options.hosts)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ProjectFiles code,
                   CodeForHosts(flags.hosts, folder.folder, {ReadEnvironment().home.value_or("")}));
  if (flags.dry_run) std::fputs(CopyText(code).c_str(), stdout);
  return absl::OkStatus();
}

absl::StatusOr<int> Train(TrainFlags flags) {
  RETURN_IF_ERROR(CheckFlags(flags));
  ASSIGN_OR_RETURN(const std::optional<Draw> draw, ParseDraw(flags));
  ASSIGN_OR_RETURN(const FolderFile folder, ReadExperimentFile(flags.file));
  for (const std::string& warning : folder.file.warnings) std::fprintf(stderr, "muster train: %s\n", warning.c_str());
  ASSIGN_OR_RETURN(const std::string supervisor, SupervisorOf(flags, folder.file));
  if (!supervisor.empty()) return TrainUnder(supervisor, flags, folder);
  Submission submission;
  NewExperiment& experiment = submission.experiment;
  std::optional<OpenedHome> opened;
  HostSetting before;  // of the attempt before
  if (flags.experiment.empty()) {
    ASSIGN_OR_RETURN(experiment.runs, NewRuns(folder.file, flags, draw));
    experiment.grid = experiment.runs.size() > 1;
  } else {
    ASSIGN_OR_RETURN(opened, OpenHome());
    ASSIGN_OR_RETURN(const RunRecord former, FormerAttempt(*opened->registry, folder, flags.experiment));
    ASSIGN_OR_RETURN(experiment.runs, RunsOfAgain(*opened->registry, former, folder.file, flags));
    WarnOfOldValues(folder.file, experiment.runs, flags);
    submission.again = former.id;
    ASSIGN_OR_RETURN(const NewExperiment specification, opened->registry->Specification(former.id.number));
    before = specification.options.hosts;
    experiment.grid = former.runs > 0;
  }
  ASSIGN_OR_RETURN(flags.options.hosts, HostsToUse(flags.hosts, folder, before));
  // Checked first, so that an experiment that can't run leaves nothing behind, not even the home.
  RETURN_IF_ERROR(
      CheckPathsOfJob(flags.options.hosts, ReadEnvironment().home.value_or(""), folder.folder, OwnProgram()));
  ASSIGN_OR_RETURN(const ExperimentCheck check,
                   CheckExperiment(folder.file, experiment.runs, flags.options, ExperimentHostHere(folder.file)));
  if (flags.dry_run && !experiment.runs.empty()) {
    ASSIGN_OR_RETURN(const std::string plan, PlanText(folder.file, experiment.runs,
                                                      {.options = flags.options,
                                                       .stop_grace = flags.stop_grace.has_value(),
                                                       .hosts = GivenKeys(flags, folder.file),
                                                       .of_job = GivenOfJob(flags.hosts),
                                                       .code_limit = flags.hosts.code_limit,
                                                       .parameters = flags.parameters,
                                                       .environment = OwnEnvironment()}));
    std::fputs(plan.c_str(), stdout);
  }
  RETURN_IF_ERROR(StatusOf(check, CommandGiven(flags), flags.parameters));
  for (const std::string& unknown : UnknownParameters(folder.file, experiment.runs.front()))
    std::fprintf(stderr, "muster train: %s\n", unknown.c_str());
  RETURN_IF_ERROR(CheckCode(flags, folder));
  if (flags.dry_run) return !flags.options.hosts.job_engine().empty() ? ShowScript(folder.file, flags.options) : 0;
  if (!opened.has_value()) {
    ASSIGN_OR_RETURN(opened, OpenHome());
  }
  experiment.project = folder.file.project;
  experiment.folder = folder.folder;
  experiment.file_name = folder.name;
  experiment.file_text = folder.text;
  experiment.options = flags.options;
  experiment.environment = OwnEnvironment();
  submission.concurrency = folder.file.concurrency;
  ASSIGN_OR_RETURN(experiment.tree, SyncProject(folder.folder, opened->home, flags.show.json));
  return Submit(*opened, submission, flags.show);
}

int TrainAndReport(const TrainFlags& flags) {
  const absl::StatusOr<int> code = Train(flags);
  return code.ok() ? *code : ReportError("train", code.status());
}

}  // namespace

void AddTrainCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", kTrainDescription);
  command
      ->add_option("-f,--file", flags->file,
                   "The experiment file, or a folder with one (default: muster.yml or riseml.yml here)")
      ->type_name("FILE");
  command->add_option("--param", flags->parameters, "Set a parameter's value, or values; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--random", flags->random, "Make N runs with random values")->type_name("N");
  command->add_option("--seed", flags->seed, "For --random: the same seed gives the same values (default 0)")
      ->type_name("S");
  command->add_option("--experiment", flags->experiment, "Start another attempt of this experiment, or run of a grid")
      ->type_name("ID")
      ->check(RefuseEmptyId);
  command->add_flag("--dry-run", flags->dry_run, "Show how the file was understood; start and write nothing");
  command->add_flag("--no-gpus", flags->options.no_gpus, "Run without the GPUs that the file asks for");
  command->add_flag("--no-venv", flags->options.no_venv,
                    "Use the python on PATH, whatever framework version the file asks for");
  command
      ->add_option("--stop-grace", flags->stop_grace,
                   "How long tasks may take to end when asked to, before they are killed (default 30)")
      ->type_name("SECONDS");
  AddHostFlags(command, flags->hosts, "in a job of its own, also within an allocation");
  AddJobFlags(command, flags->hosts);
  command
      ->add_option("--supervisor", flags->supervisor,
                   "Where it is supervised: here (default), or a host that ssh reaches and that stays on")
      ->type_name("HOST");
  AddShowFlags(*command, flags->show);
  command->footer(kTrainFooter);
  command->callback([flags, &exit_code] { exit_code = TrainAndReport(*flags); });
}

}  // namespace muster
