// `muster status [ID]`: the experiments that go on and the last few, or the tasks of one.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/experiment/experiment_json.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/jobs/far_jobs.h"
#include "muster/launch/output/aligned_lines.h"
#include "muster/launch/registry/files/machine_id.h"

namespace muster {
namespace {

constexpr char kStatusDescription[] = "Show running experiments and the last few, or the tasks of one";

constexpr char kStatusFooter[] = R"(
Without an id: the experiments of the project of this folder (see its muster.yml); without such a file, or with --all,
those of all projects. An experiment that lost its supervisor, by a kill or a reboot, is FAILED and says so, with the
command that goes on with it and, if processes of it are left, the one that ends them.

Examples:
  muster status
  muster status --all
  muster status 4            its tasks; for a grid, its runs
  muster status 4.3          the tasks of a run of a grid
  muster status 4 --json

Exit codes: 0; 2 no such experiment.)";

// How many ended experiments are shown.
constexpr int kLastEnded = 5;

struct StatusFlags {
  std::string id;
  bool all = false;
  bool json = false;
};

std::string AgeOf(const RunRecord& run) { return ShownAge(RealClock().Now() - run.created); }

std::string ParametersText(const ParameterValues& parameters) {
  return absl::StrJoin(parameters, " ", absl::PairFormatter("="));
}

void PrintJson(const nlohmann::json& value) { std::printf("%s\n", OneLineJson(value).c_str()); }

// Returns where a run goes on and how old that news is, if its supervisor is on another machine or in a job.
std::string ElsewhereText(const OpenedHome& opened, const RunRecord& run) {
  const RunInJob* const in_job = opened.jobs->Find(run.id);
  if (in_job != nullptr && (run.state == RunState::kCreated || in_job->news.phase == JobPhase::kWaits))
    return absl::StrCat(run.reason.empty() ? "" : "; ", in_job->text);
  if (run.runs > 0 && in_job != nullptr) return "";  // its runs have jobs
  if (HasEnded(run.state) || opened.registry->IsHere(run)) return "";
  const std::optional<absl::Duration> age = opened.registry->SinceRenewal(run.id);
  return absl::StrCat(run.reason.empty() ? "" : "; ", "on ", MachineId::Parse(run.machine).host,
                      age.has_value() ? absl::StrCat(", as of ", ShownAge(*age), " ago") : "",
                      in_job == nullptr ? "" : absl::StrCat(", ", in_job->text));
}

nlohmann::json JsonWithJob(const OpenedHome& opened, const RunRecord& run) {
  nlohmann::json object = JsonOf(run);
  if (const RunInJob* const in_job = opened.jobs->Find(run.id); in_job != nullptr && !in_job->job.id.empty()) {
    object["job"] = JsonOf(in_job->job);
    object["job"]["state"] = in_job->news.text;
  }
  return object;
}

// Returns why a run ended so, where it is, what is left of it, and how it goes on.
std::string WhyText(const OpenedHome& opened, const RunRecord& run) {
  const std::string fetching = FetchingText(opened.home, run);
  return absl::StrCat(run.reason, ElsewhereText(opened, run), fetching.empty() || run.reason.empty() ? "" : "; ",
                      fetching, GoOnText(*opened.registry, run), LeftText(opened, run.id));
}

// Returns the experiments that haven't ended and the newest of the others, in order.
absl::StatusOr<std::vector<RunRecord>> OpenAndLast(Registry& registry, const std::string& project) {
  ASSIGN_OR_RETURN(std::vector<RunRecord> runs, registry.List({.project = project, .only_open = true}));
  ASSIGN_OR_RETURN(const std::vector<RunRecord> last,
                   registry.List({.project = project, .last = kLastEnded + static_cast<int>(runs.size())}));
  const size_t open = runs.size();
  for (auto run = last.rbegin(); run != last.rend() && runs.size() < open + kLastEnded; ++run)
    if (HasEnded(run->state)) runs.push_back(*run);
  std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) { return a.id < b.id; });
  return runs;
}

absl::Status ShowExperiments(const OpenedHome& opened, const StatusFlags& flags) {
  Registry& registry = *opened.registry;
  std::string project;
  if (!flags.all) {
    ASSIGN_OR_RETURN(project, ProjectHere());
  }
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, OpenAndLast(registry, project));
  if (flags.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const RunRecord& run : runs) list.push_back(JsonWithJob(opened, run));
    PrintJson(list);
    return absl::OkStatus();
  }
  if (runs.empty()) {
    std::printf("no experiments yet%s; muster train starts one%s\n",
                project.empty() ? "" : absl::StrCat(" of project ", OneLine(project)).c_str(),
                flags.all ? "" : SupervisedElsewhereText().c_str());
    return absl::OkStatus();
  }
  std::vector<std::vector<std::string>> rows = {{"ID", "PROJECT", "STATE", "AGE", "WHY"}};
  for (const RunRecord& run : runs)
    rows.push_back({run.id.ToString(), run.project, std::string(Name(run.state)), AgeOf(run), WhyText(opened, run)});
  std::fputs(AlignedText(std::move(rows)).c_str(), stdout);
  return absl::OkStatus();
}

void PrintHead(const OpenedHome& opened, const RunRecord& run) {
  const std::string why = WhyText(opened, run);
  std::printf("%s\n", OneLine(absl::StrCat("experiment ", ShownId(run.id), " of project ", run.project, ": ",
                                           std::string(Name(run.state)), why.empty() ? "" : ", ", why, ", ", AgeOf(run),
                                           " old"))
                          .c_str());
}

absl::Status ShowRuns(const OpenedHome& opened, const RunRecord& grid, bool json) {
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, opened.registry->Runs(grid.id.number));
  if (json) {
    nlohmann::json whole = JsonWithJob(opened, grid);
    whole["run_list"] = nlohmann::json::array();
    for (const RunRecord& run : runs) whole["run_list"].push_back(JsonWithJob(opened, run));
    PrintJson(whole);
    return absl::OkStatus();
  }
  PrintHead(opened, grid);
  std::vector<std::vector<std::string>> rows = {{"ID", "STATE", "PARAMETERS", "WHY"}};
  for (const RunRecord& run : runs)
    rows.push_back(
        {run.id.ToString(), std::string(Name(run.state)), ParametersText(run.parameters), WhyText(opened, run)});
  std::fputs(AlignedText(std::move(rows)).c_str(), stdout);
  return absl::OkStatus();
}

// Returns the reason for a task's state, for the table.
std::string WhyText(const TaskRecord& task) {
  const std::string end = !task.reason.empty() ? task.reason : task.exit.has_value() ? task.exit->ToString() : "";
  return end.empty() || HasEnded(task.state) ? end : "was restarted: " + end;
}

absl::Status ShowTasks(const OpenedHome& opened, const RunRecord& run, const ExperimentName& name, bool json) {
  ASSIGN_OR_RETURN(std::vector<TaskRecord> tasks, opened.registry->Tasks(run.id));
  if (name.task.has_value()) {
    std::erase_if(tasks, [&name](const TaskRecord& task) { return task.task != *name.task; });
    if (tasks.empty())
      return absl::NotFoundError(absl::StrCat(FullName(run.id, *name.task), ": experiment ", ShownId(run.id),
                                              " has no such task; muster status ", ShownId(run.id), " lists them"));
  }
  if (json) {
    nlohmann::json whole = JsonWithJob(opened, run);
    whole["tasks"] = nlohmann::json::array();
    for (const TaskRecord& task : tasks) whole["tasks"].push_back(JsonOf(run.id, task));
    PrintJson(whole);
    return absl::OkStatus();
  }
  PrintHead(opened, run);
  // Tasks on hosts have their host in place of a process's number, which would be another process here.
  const bool is_here = opened.registry->IsHere(run);
  const bool on_hosts =
      std::any_of(tasks.begin(), tasks.end(), [](const TaskRecord& task) { return !task.host.empty(); });
  std::vector<std::vector<std::string>> rows = {{"ID", "STATE", "SINCE", on_hosts ? "HOST" : "PID", "RESTARTS", "WHY"}};
  for (const TaskRecord& task : tasks) {
    const std::string pid = task.pid > 0 && is_here ? absl::StrCat(task.pid) : "";
    rows.push_back({FullName(run.id, task.task), std::string(Name(task.state)), ShownTime(task.since),
                    on_hosts ? task.host : pid, absl::StrCat(task.restarts), WhyText(task)});
  }
  std::fputs(AlignedText(std::move(rows)).c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Status(const StatusFlags& flags) {
  if (flags.all && !flags.id.empty()) return absl::InvalidArgumentError("--all: accepted without an id");
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  if (flags.id.empty()) return ShowExperiments(opened, flags);
  ASSIGN_OR_RETURN(const ExperimentName name, ExperimentName::Parse(flags.id));
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(name.id));
  if (run.runs > 0 && !name.task.has_value()) return ShowRuns(opened, run, flags.json);
  return ShowTasks(opened, run, name, flags.json);
}

}  // namespace

void AddStatusCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* command = app.add_subcommand("status", kStatusDescription);
  command->add_option("ID", flags->id, "An experiment, a run of a grid, or a task")
      ->type_name("")
      ->check(RefuseEmptyId);
  command->add_flag("--all", flags->all, "All projects");
  command->add_flag("--json", flags->json, "Print JSON, on one line");
  command->footer(kStatusFooter);
  command->callback([flags, &exit_code] {
    const absl::Status done = Status(*flags);
    exit_code = done.ok() ? 0 : ReportError("status", done);
  });
}

}  // namespace muster
