#include "apps/muster/experiment/check_experiment.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/experiment/experiment_hosts.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

constexpr char kAnyValue[] = "…";

// Returns the names in the commands that have no value, each once, in order.
std::vector<std::string> MissingParameters(const ExperimentFile& file, const ParameterValues& values) {
  std::vector<std::string> missing;
  for (const std::string& command : file.run) {
    const auto names = TemplateNames(command);
    if (!names.ok()) continue;  // ParseExperimentFile has refused it
    for (const std::string& name : *names)
      if (!values.contains(name) && std::find(missing.begin(), missing.end(), name) == missing.end())
        missing.push_back(name);
  }
  return missing;
}

// Adds a line for each place of a `{{ name }}` without a value.
void FindMissingParameters(const ExperimentFile& file, const ParameterValues& values, ExperimentCheck& check) {
  check.missing = MissingParameters(file, values);
  for (const std::string& name : check.missing)
    for (const ParameterSpec& parameter : file.parameters)  // which the command means, and which no flag can rename
      if (EnvironmentNameOf(parameter.name) == EnvironmentNameOf(name)) check.flags_help = false;
  for (size_t i = 0; i < file.run.size(); ++i) {
    const auto filled = FillTemplate(file.run[i], values);
    if (filled.ok()) continue;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(filled.status().message(), '\n')))
      check.problems.push_back(absl::StrCat(file.run_places[i], ": ", line));
  }
}

// Adds what tasks lack, roles with the same lacks in one line.
void FindLacks(const ExperimentFile& file, const ExperimentPlan& plan, const SubmitOptions& options,
               const Machine& machine, ExperimentCheck& check) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>>
      lacking;  // (place, lacks), jobs
  bool without_gpus = false;
  for (const PlannedTask& task : plan.tasks) {
    const TaskId& id = task.process.task;
    const std::string lacks = LacksFor(task.resources, machine);
    if (lacks.empty() || id.index > 0) continue;  // all tasks of a role have the same limits
    Resources others = task.resources;
    others.gpus.reset();
    if (!LacksFor(others, machine).empty()) check.flags_help = false;
    without_gpus = without_gpus || task.resources.gpus.value_or(0) > machine.gpus;
    const std::pair what(RoleOfTask(file, id).resources_place, lacks);
    if (lacking.empty() || lacking.back().first != what) lacking.push_back({what, {}});
    lacking.back().second.push_back(id.job);
  }
  for (const auto& [what, jobs] : lacking)
    check.problems.push_back(absl::StrCat(what.first, ": ", absl::StrJoin(jobs, " and "),
                                          jobs.size() > 1 ? " each ask for " : " asks for ", what.second));
  const int gpus = options.no_gpus ? 0 : GpusNeeded(plan);
  if (!without_gpus && gpus > machine.gpus)
    check.problems.push_back(absl::StrCat(file.name, ": the tasks ask for ", gpus, gpus == 1 ? " gpu" : " gpus",
                                          " together, this machine has ", machine.gpus, "; --no-gpus runs without"));
  if (without_gpus || gpus > machine.gpus) check.flags.emplace_back("--no-gpus");
}

void FindMissingVolumes(const ExperimentFile& file, ExperimentCheck& check) {
  for (const VolumeSpec& volume : file.volumes) {
    std::error_code error;
    if (std::filesystem::exists(volume.host, error)) continue;
    check.flags_help = false;
    check.problems.push_back(absl::StrCat(file.name, ": train.volumes: ", volume.host,
                                          " doesn't exist; accepted: a folder or a file of this machine"));
  }
}

// Adds a line for each command that gets hosts whose program isn't here.
void FindMissingPrograms(const CommandSetting& commands, ExperimentCheck& check) {
  for (const CommandPart part : kCommandParts) {
    const std::vector<std::string>& argv = commands.Of(part).argv;
    if (argv.empty() || absl::StrContains(argv.front(), '{')) continue;
    const std::string& name = argv.front();
    const bool is_below = name.find('/') != std::string::npos && name.front() != '/';
    const std::string path = std::filesystem::path(JoinPath(commands.folder, name)).lexically_normal().string();
    const auto program = FindProgram(is_below ? path : name, OwnVariable("PATH"));
    if (program.ok()) continue;
    check.flags_help = false;
    check.problems.push_back(
        absl::StrCat("hosts_by: ", AbslView(Name(part)), ": ", std::string(program.status().message())));
  }
}

// What hosts have isn't known before they are reached.
void CheckOnHosts(const ExperimentFile& file, const SubmitOptions& options, ExperimentCheck& check) {
  const absl::StatusOr<HostPlan> plan = PlanHosts(file, options);
  if (plan.ok()) return;
  SubmitOptions without_venv = options;
  without_venv.no_venv = true;
  if (!options.no_venv && PlanHosts(file, without_venv).ok())
    check.flags.emplace_back("--no-venv");
  else
    check.flags_help = false;
  check.problems.emplace_back(plan.status().message());
}

}  // namespace

ExperimentHost ExperimentHostHere(const ExperimentFile& file) {
  // An index beside the usual one, or its mirror, is for packages that it lacks.
  const bool other_index = !OwnVariable("PIP_EXTRA_INDEX_URL").empty() || !OwnVariable("PIP_FIND_LINKS").empty();
  return {.machine = ThisMachine(),
          .python = other_index || file.version.empty() ? std::nullopt : PythonOnPath(OwnVariable("PATH")),
          .home = Home(ReadEnvironment().home.value_or(""))};
}

absl::StatusOr<ExperimentPlan> PlanToLookAt(const ExperimentFile& file, ParameterValues parameters,
                                            const SubmitOptions& options) {
  for (const std::string& name : MissingParameters(file, parameters)) parameters[name] = kAnyValue;
  ExperimentPlanRequest request;
  request.id = {.number = 1};
  request.parameters = std::move(parameters);
  request.output_dir = "/";
  request.muster_command = "muster";
  request.no_gpus = options.no_gpus;
  const int addresses = AddressesNeeded(file);
  for (int i = 0; i < addresses; ++i) request.addresses.push_back(absl::StrCat("127.0.0.1:", 1 + i));
  if (file.framework == Framework::kMuster && !options.hosts.is_elsewhere()) {
    const size_t tasks = TasksOfFile(file).size();
    for (size_t i = 0; i < tasks; ++i) request.status_ports.push_back(static_cast<int>(1 + i));
  }
  return PlanExperiment(file, request);
}

absl::StatusOr<ExperimentCheck> CheckExperiment(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                                const SubmitOptions& options, const ExperimentHost& host) {
  ExperimentCheck check;
  if (runs.empty()) {
    check.flags_help = false;
    check.problems.push_back(
        absl::StrCat(file.name, ": its parameters have no combination: each needs at least one value"));
    return check;
  }
  // All runs have the same tasks and parameter names.
  FindMissingParameters(file, runs.front(), check);
  if (check.missing.empty()) RETURN_IF_ERROR(CheckCommands(file, runs));
  ASSIGN_OR_RETURN(const ExperimentPlan plan, PlanToLookAt(file, runs.front(), options));
  if (options.hosts.is_elsewhere()) {
    if (options.hosts.command.has_value()) FindMissingPrograms(*options.hosts.command, check);
    CheckOnHosts(file, options, check);
    return check;
  }
  FindLacks(file, plan, options, host.machine, check);
  const std::string version = VersionProblem(file, options, host.home, host.python);
  if (!version.empty()) {
    check.flags.emplace_back("--no-venv");
    check.problems.push_back(absl::StrCat(file.version_place, ": ", version,
                                          "; accepted: a later version, the python3 that it was made for first on ",
                                          "PATH, or --no-venv, which uses the python on PATH as it is"));
  }
  FindMissingVolumes(file, check);
  return check;
}

std::vector<std::string> UnknownParameters(const ExperimentFile& file, const ParameterValues& values) {
  std::vector<std::string> known;
  for (const ParameterSpec& parameter : file.parameters) known.push_back(parameter.name);
  for (const std::string& command : file.run) {
    const auto names = TemplateNames(command);
    if (names.ok()) known.insert(known.end(), names->begin(), names->end());
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : values) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    lines.push_back(absl::StrCat("parameter '", name, "' is neither in ", file.name, " nor in its commands",
                                 NearestHint(name, known), ": tasks only get it as an environment variable"));
  }
  return lines;
}

absl::Status StatusOf(const ExperimentCheck& check, const std::string& command,
                      const std::vector<std::string>& parameters) {
  if (check.problems.empty()) return absl::OkStatus();
  std::vector<std::string> lines = check.problems;
  if (check.flags_help) {
    std::vector<std::string> words = {command};
    words.insert(words.end(), check.flags.begin(), check.flags.end());
    std::set<std::string> given;
    for (std::string parameter : parameters) {
      const std::string name = parameter.substr(0, parameter.find('='));
      // One that differs from a missing one only by '-' and '_' is meant for it.
      for (const std::string& missing : check.missing)
        if (EnvironmentNameOf(missing) == EnvironmentNameOf(name)) parameter.replace(0, name.size(), missing);
      given.insert(parameter.substr(0, parameter.find('=')));
      words.push_back(absl::StrCat("--param ", ShellWord(parameter)));
    }
    for (const std::string& name : check.missing)
      if (!given.contains(name)) words.push_back(absl::StrCat("--param ", name, "=", kAnyValue));
    lines.push_back(absl::StrCat("it runs here with: ", absl::StrJoin(words, " ")));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace muster
