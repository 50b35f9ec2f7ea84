// `muster logs [ID]`: what the tasks of an experiment have written, and on request what they go on to write.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/shown_log.h"
#include "apps/muster/terminal/color_flag.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr char kLogsDescription[] = "Show the output of all tasks of an experiment, merged by time";

constexpr char kLogsFooter[] = R"(
Without ID: the last experiment of the project in this folder. For a grid: the lines of all runs.

Examples:
  muster logs                   the whole log of the last experiment
  muster logs 4 -f              the log of experiment 4, and new lines until it has ended
  muster logs 4.worker.2        the log of one task
  muster logs 4.3 --last 20     the last 20 lines of each task of run 3 of a grid
  muster logs 4 --json | jq -r 'select(.stream == "stderr").text'

Each line begins with the task's name; changes of state have their time and an arrow. Control characters and bytes that
aren't UTF-8 are shown as \xNN. --json prints one object per line with the unchanged text, {"id", "time", "stream",
"text"}; stream is stdout, stderr, state or muster. Ctrl-C only stops showing the log, never the experiment.)";

struct LogsOptions {
  std::string name;
  bool follow = false;
  std::string last;
  bool json = false;
  std::string color = "auto";
};

// NotFound, naming the tasks that exist.
absl::Status CheckTask(Registry& registry, const ExperimentName& name) {
  if (!name.task.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const RunRecord record, registry.Run(name.id));
  const bool whole_grid = record.runs > 0 && name.id.run == 0;
  // Any of a grid's runs may be the one that builds; all other tasks are the same in each run.
  if (whole_grid && name.task->job == kBuildJob) return absl::OkStatus();
  const ExperimentId run = whole_grid ? ExperimentId{name.id.number, 1} : name.id;
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> tasks, registry.Tasks(run));
  std::vector<std::string> labels;
  for (const TaskRecord& task : tasks) {
    if (task.task == *name.task) return absl::OkStatus();
    labels.push_back(LabelOf(task.task));
  }
  if (labels.empty()) return absl::OkStatus();  // not planned yet
  return absl::NotFoundError(absl::StrCat("experiment ", name.id.ToString(), " has no task ", LabelOf(*name.task),
                                          "; it has: ", absl::StrJoin(labels, ", ")));
}

// There is nothing to show of a run that failed or was killed before it had tasks.
absl::Status SayIfNoneHasRun(Registry& registry, const ExperimentId& id) {
  ASSIGN_OR_RETURN(const RunRecord run, registry.Run(id));
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> tasks, registry.Tasks(id));
  const bool failed = HasEnded(run.state) && run.state != RunState::kFinished;
  if (run.runs > 0 || !failed || !tasks.empty()) return absl::OkStatus();
  std::fprintf(stderr, "muster logs: no task of experiment %s has run: it is %s%s\n", ShownId(id).c_str(),
               std::string(Name(run.state)).c_str(), run.reason.empty() ? "" : (": " + OneLine(run.reason)).c_str());
  return absl::OkStatus();
}

absl::Status ShowLogs(const LogsOptions& options) {
  FollowOptions how = {.follow = options.follow, .json = options.json};
  if (!options.last.empty() && (!absl::SimpleAtoi(options.last, &how.last_lines) || how.last_lines < 0))
    return absl::InvalidArgumentError(
        absl::StrCat("--last '", options.last, "': accepted is a number of lines, from 0"));
  ASSIGN_OR_RETURN(how.color, WantsColor(options.color, STDOUT_FILENO));
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(const ExperimentName name, NameOrLast(*opened.registry, options.name));
  RETURN_IF_ERROR(CheckTask(*opened.registry, name));
  if (name.task.has_value()) how.only = {LabelOf(*name.task)};
  RETURN_IF_ERROR(ShowLog(opened, name.id, how).status());
  return SayIfNoneHasRun(*opened.registry, name.id);
}

}  // namespace

void AddLogsCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", kLogsDescription);
  command->add_option("ID", options->name, "An experiment, a run or a task: 4, 4.3, 4.worker.2, 4.3.worker.2")
      ->type_name("")
      ->check(RefuseEmptyId);
  command->add_flag("-f,--follow", options->follow, "Also show new lines, until the experiment has ended");
  command->add_option("--last", options->last, "Show only the last N lines of each task")->type_name("N");
  command->add_flag("--json", options->json, "Print one JSON object per line");
  command->add_option("--color", options->color, "auto (default), always, never: keep the colours that tasks write")
      ->type_name("WHEN");
  command->footer(kLogsFooter);
  command->callback([options, &exit_code] {
    const absl::Status shown = ShowLogs(*options);
    exit_code = shown.ok() ? 0 : ReportError("logs", shown);
  });
}

}  // namespace muster
