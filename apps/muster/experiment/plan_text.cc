#include "apps/muster/experiment/plan_text.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "apps/muster/experiment/check_experiment.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/experiment/experiment_hosts.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/spec/file_template.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

std::string Counted(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Returns the command's lines, indented; of a command of several lines the later ones deeper.
std::string CommandLines(const std::string& command) {
  const std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(command, "\n"), '\n');
  return absl::StrCat("    ", absl::StrJoin(lines, "\n      "), "\n");
}

std::string ResourcesLine(const Resources& resources) {
  std::vector<std::string> parts;
  if (resources.cpus.has_value())
    parts.push_back(absl::StrCat(*resources.cpus, *resources.cpus == 1 ? " cpu" : " cpus"));
  if (resources.mem_bytes.has_value()) parts.push_back(MemoryText(*resources.mem_bytes) + " of memory");
  if (resources.gpus.value_or(0) > 0) parts.push_back(Counted(static_cast<size_t>(*resources.gpus), "GPU"));
  return parts.empty() ? "no limits" : absl::StrJoin(parts, ", ");
}

// Returns the values that the runs give each parameter, in the order in which they come.
std::map<std::string, std::vector<std::string>> ValuesOf(const std::vector<ParameterValues>& runs) {
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, std::set<std::string>> seen;
  for (const ParameterValues& run : runs)
    for (const auto& [name, value] : run)
      if (seen[name].insert(value).second) values[name].push_back(OneLine(value));
  return values;
}

// A command with a parameter that has no value is shown as in the file.
std::vector<std::string> CommandsOf(const ExperimentFile& file, const ParameterValues& values) {
  std::vector<std::string> commands;
  for (const std::string& command : file.run) {
    const auto filled = FillTemplate(command, values);
    commands.push_back(filled.ok() ? *filled : command);
  }
  return commands;
}

std::string TasksText(const ExperimentFile& file, const ExperimentPlan& plan,
                      const std::vector<std::string>& commands) {
  std::string text;
  for (size_t i = 0; i < plan.tasks.size();) {
    const PlannedTask& first = plan.tasks[i];
    const std::string& job = first.process.task.job;
    std::vector<std::string> labels;
    for (; i < plan.tasks.size() && plan.tasks[i].process.task.job == job; ++i)
      labels.push_back(LabelOf(plan.tasks[i].process.task));
    const bool all = labels.size() <= 3;
    const std::string names = all ? absl::StrJoin(labels, ", ") : absl::StrCat(labels.front(), " to ", labels.back());
    absl::StrAppend(&text, "  ", names, ": ", ResourcesLine(first.resources), "\n");
    if (file.framework == Framework::kMuster && job == kPsJob) {
      absl::StrAppend(&text, CommandLines("muster ps"));
      continue;
    }
    for (const std::string& command : commands) absl::StrAppend(&text, CommandLines(command));
  }
  return text;
}

// Returns "  h1: ps.1, master" for each host; "" without hosts.
absl::StatusOr<std::string> HostsText(const ExperimentFile& file, const SubmitOptions& options) {
  if (options.hosts.command.has_value())
    return absl::StrCat("hosts: ", options.hosts.command->hosts, ", from ",
                        TypedCommand(options.hosts.command->acquire.argv), "\n");
  if (options.hosts.hosts.empty()) return "";
  ASSIGN_OR_RETURN(const HostPlan plan, PlanHosts(file, options));
  std::map<std::string, std::vector<std::string>> tasks;
  for (const TaskId& task : TasksOfFile(file)) tasks[plan.placement.at(task)].push_back(LabelOf(task));
  std::string text = "hosts, with their tasks:\n";
  for (const Host& host : plan.hosts) {
    const auto found = tasks.find(host.name);
    absl::StrAppend(&text, "  ", host.name, ": ", found == tasks.end() ? "none" : absl::StrJoin(found->second, ", "),
                    "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> PlanText(const ExperimentFile& file, const std::vector<ParameterValues>& runs,
                                     const GivenValues& given) {
  const SubmitOptions& options = given.options;
  ASSIGN_OR_RETURN(const ExperimentPlan plan, PlanToLookAt(file, runs.front(), options));
  std::string text =
      absl::StrCat(file.name, ": project ", file.project, ", framework ", AbslView(Name(file.framework)));
  if (!file.version.empty())
    absl::StrAppend(&text, " ", file.version, file.gpu_version ? "-gpu" : "", options.no_venv ? " (that on PATH)" : "");
  absl::StrAppend(
      &text, "\n",
      runs.size() > 1 ? absl::StrCat("grid: ", runs.size(), " runs, ", file.concurrency, " at a time, each of ") : "",
      Counted(plan.tasks.size(), "task"), "\n");
  if (!runs.front().empty()) absl::StrAppend(&text, "parameters:\n");
  for (const auto& [name, values] : ValuesOf(runs))
    absl::StrAppend(&text, "  ", name, ": ", absl::StrJoin(values, ", "), "\n");
  if (!file.install.empty()) absl::StrAppend(&text, "install, once before the tasks:\n");
  for (const std::string& command : file.install) absl::StrAppend(&text, CommandLines(command));
  absl::StrAppend(&text, "tasks, with their commands", runs.size() > 1 ? " in the first run" : "", ":\n",
                  TasksText(file, plan, CommandsOf(file, runs.front())));
  // What keeps tasks from having places is said later, with all other problems.
  absl::StrAppend(&text, HostsText(file, options).value_or(""));
  std::set<std::string> variables;
  for (const PlannedTask& task : plan.tasks)
    for (const auto& [name, value] : task.process.environment) variables.insert(name);
  return absl::StrCat(text, "variables of the tasks: ", absl::StrJoin(variables, ", "),
                      "\nsettings and where they come from (", kPrecedence, "):\n", ValueSourcesText(file, given));
}

}  // namespace muster
