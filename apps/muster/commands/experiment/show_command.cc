// `muster show [ID]`: all that is known of an experiment, its results included.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_json.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/jobs/job_engines.h"
#include "muster/launch/results/metrics.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kShowDescription[] = "Show all that is known of an experiment, including its results";

constexpr char kShowFooter[] = R"(
Shows its parameters; the metrics and files in its OUTPUT_DIR (the last value of each scalar of its TensorBoard logs,
the numbers of metrics.json); each task's exit code and why it ended; and the paths of its folder, its logs and its
code.

Examples:
  muster show                the last experiment of the project here
  muster show 4
  muster show 4.3            a run of a grid (for all runs: muster results 4)
  muster show 4 --json

Exit codes: 0; 2 no such experiment.)";

// How many files of OUTPUT_DIR are listed; others are only counted.
constexpr size_t kFilesShown = 20;

struct ShowCommandFlags {
  std::string id;
  bool json = false;
};

struct OutputFile {
  std::string path;  // below OUTPUT_DIR
  int64_t bytes;
};

// Returns the files by path. Files may appear and vanish meanwhile.
std::vector<OutputFile> FilesBelow(const std::string& folder) {
  std::vector<OutputFile> files;
  std::error_code gone;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(folder, options, gone), end; !gone && it != end; it.increment(gone)) {
    std::error_code removed;
    if (!it->is_regular_file(removed)) continue;
    const uintmax_t bytes = it->file_size(removed);
    if (!removed) files.push_back({it->path().lexically_relative(folder).string(), static_cast<int64_t>(bytes)});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

// Everything that is shown.
struct Shown {
  RunRecord run;
  std::vector<TaskRecord> tasks;
  std::vector<RunRecord> runs;            // of a grid
  std::map<ExperimentId, JobOfRun> jobs;  // in which it, or the grid's runs, are or were
  std::string job_script, job_output;     // of its job
  std::map<std::string, ResultMetric> metrics;
  std::vector<OutputFile> files;
  std::string experiment_folder, logs;
  std::string output_places;  // where the newest output is while it isn't here
};

// The job of a run, if it is or was in one. A grid has none of its own.
void CollectJob(const OpenedHome& opened, const ExperimentId& id, Shown& shown) {
  const auto job = ReadJobFile(opened.home.job(id));
  if (job.ok() && job->has_value() && !(*job)->id.empty()) shown.jobs[id] = **job;
}

absl::StatusOr<Shown> Collect(const OpenedHome& opened, const ExperimentId& id) {
  Shown shown;
  ASSIGN_OR_RETURN(shown.run, opened.registry->Run(id));
  ASSIGN_OR_RETURN(shown.tasks, opened.registry->Tasks(id));
  if (shown.run.runs > 0) {
    ASSIGN_OR_RETURN(shown.runs, opened.registry->Runs(id.number));
  } else {
    shown.metrics = ReadMetrics(shown.run.output_dir);
    shown.files = FilesBelow(shown.run.output_dir);
  }
  CollectJob(opened, id, shown);
  for (const RunRecord& run : shown.runs) CollectJob(opened, run.id, shown);
  shown.job_script = opened.home.job_script(id);
  shown.job_output = opened.home.job_output(id);
  shown.experiment_folder = opened.home.folder(id);
  shown.logs = opened.home.logs(id);
  shown.output_places = PosixFileSystem().ReadFile(opened.home.output_elsewhere(id)).value_or("");
  return shown;
}

nlohmann::json RunJson(const Shown& shown, const RunRecord& run) {
  nlohmann::json json = JsonOf(run);
  if (const auto job = shown.jobs.find(run.id); job != shown.jobs.end()) json["job"] = JsonOf(job->second);
  return json;
}

nlohmann::json ToJson(const Shown& shown) {
  nlohmann::json json = RunJson(shown, shown.run);
  json["experiment_folder"] = shown.experiment_folder;
  json["logs"] = shown.logs;
  json["tasks"] = nlohmann::json::array();
  for (const TaskRecord& task : shown.tasks) json["tasks"].push_back(JsonOf(shown.run.id, task));
  json["metrics"] = nlohmann::json::object();
  for (const auto& [name, metric] : shown.metrics)
    json["metrics"][name] = {{"value", metric.value},
                             {"step", metric.step < 0 ? nlohmann::json() : nlohmann::json(metric.step)}};
  json["files"] = nlohmann::json::array();
  for (const OutputFile& file : shown.files) json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}});
  if (shown.run.runs == 0) return json;
  json["run_list"] = nlohmann::json::array();
  for (const RunRecord& run : shown.runs) json["run_list"].push_back(RunJson(shown, run));
  return json;
}

// Appends "  name  value" lines below a heading; nothing without rows.
void Append(std::string& text, const std::string& heading,
            const std::vector<std::pair<std::string, std::string>>& rows) {
  if (rows.empty()) return;
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, OneLine(row.first).size());
  absl::StrAppend(&text, "\n", heading, "\n");
  for (const auto& [name, value] : rows) {
    const std::string shown = OneLine(name);
    absl::StrAppend(&text, "  ", shown, std::string(widest - shown.size() + 2, ' '), OneLine(value), "\n");
  }
}

// "17 of Slurm, begun anew 2 times"; "" outside jobs.
std::string JobText(const Shown& shown, const ExperimentId& id) {
  const auto job = shown.jobs.find(id);
  if (job == shown.jobs.end()) return "";
  return absl::StrCat(job->second.id, " of ", JobEngineTitle(job->second.engine),
                      job->second.requeues == 0   ? ""
                      : job->second.requeues == 1 ? ", begun anew once"
                                                  : absl::StrCat(", begun anew ", job->second.requeues, " times"));
}

std::string HeadText(const Shown& shown) {
  const RunRecord& run = shown.run;
  std::string text = absl::StrCat("experiment ", run.id.ToString(), " of project ", OneLine(run.project), "\n");
  std::vector<std::pair<std::string, std::string>> rows = {{"state", std::string(Name(run.state))}};
  if (!run.reason.empty()) rows.emplace_back("why", run.reason);
  if (HasEnded(run.state)) rows.emplace_back("exit code", absl::StrCat(run.exit_code));
  rows.emplace_back("created", ShownTime(run.created));
  if (HasEnded(run.state))
    rows.emplace_back("ended", absl::StrCat(ShownTime(run.ended), ", after ", ShownAge(run.ended - run.created)));
  if (run.attempt > 1) rows.emplace_back("attempt", absl::StrCat(run.attempt));
  if (const std::string job = JobText(shown, run.id); !job.empty()) rows.emplace_back("job", job);
  Append(text, "how it is", rows);
  return text;
}

std::string ToText(const Shown& shown) {
  std::string text = HeadText(shown);
  std::vector<std::pair<std::string, std::string>> rows(shown.run.parameters.begin(), shown.run.parameters.end());
  Append(text, "parameters", rows);
  rows.clear();
  for (const auto& [name, metric] : shown.metrics)
    rows.emplace_back(name, absl::StrCat(metric.value, metric.step < 0 ? "" : absl::StrCat(" at step ", metric.step)));
  Append(text, "metrics", rows);
  rows.clear();
  for (const TaskRecord& task : shown.tasks) {
    // The exit status of a task that muster itself has ended says nothing about it, and a reason may begin with it.
    const bool was_ended =
        !task.reason.empty() && (task.state == RunState::kFinished || task.state == RunState::kKilled);
    const std::string end = task.exit.has_value() && !was_ended ? task.exit->ToString() : "";
    const std::string ended = end.empty() || absl::StartsWith(task.reason, end) ? "" : ", " + end;
    rows.emplace_back(FullName(shown.run.id, task.task),
                      absl::StrCat(std::string(Name(task.state)), ended, task.reason.empty() ? "" : ", ", task.reason));
  }
  Append(text, "tasks", rows);
  rows.clear();
  for (const RunRecord& run : shown.runs) {
    const std::string job = JobText(shown, run.id);
    rows.emplace_back(run.id.ToString(), absl::StrCat(std::string(Name(run.state)), run.reason.empty() ? "" : ", ",
                                                      run.reason, job.empty() ? "" : ", job ", job));
  }
  Append(text, absl::StrCat("runs (results: muster results ", ShownId(shown.run.id), ")"), rows);
  rows.clear();
  for (size_t i = 0; i < std::min(shown.files.size(), kFilesShown); ++i)
    rows.emplace_back(shown.files[i].path, absl::StrCat(shown.files[i].bytes, " bytes"));
  if (shown.files.size() > kFilesShown) rows.emplace_back("…", absl::StrCat(shown.files.size() - kFilesShown, " more"));
  Append(text, "files in OUTPUT_DIR", rows);
  rows = {{"output", shown.run.output_dir}};
  if (!shown.output_places.empty())
    rows.emplace_back("output now", absl::StrCat(shown.output_places, HasEnded(shown.run.state) ? ": it never came here"
                                                                                                : " until the end"));
  rows.insert(rows.end(), {{"logs", shown.logs},
                           {"folder", shown.experiment_folder},
                           {"started in", shown.run.folder},
                           {"code", shown.run.tree}});
  if (shown.jobs.contains(shown.run.id)) {
    rows.emplace_back("the job's script", shown.job_script);
    // It may be where the job was alone: in its pod, or with Ray.
    std::error_code gone;
    if (fs::exists(shown.job_output, gone)) rows.emplace_back("the job's output", shown.job_output);
  }
  Append(text, "where it is", rows);
  return text;
}

absl::Status Show(const ShowCommandFlags& flags) {
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(const ExperimentName name, NameOrLast(*opened.registry, flags.id));
  if (name.task.has_value())
    return absl::InvalidArgumentError(absl::StrCat(flags.id, ": a single task can't be shown; accepted: muster show ",
                                                   ShownId(name.id), ", muster status ", flags.id));
  ASSIGN_OR_RETURN(const Shown shown, Collect(opened, name.id));
  std::fputs((flags.json ? OneLineJson(ToJson(shown)) + "\n" : ToText(shown)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddShowCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ShowCommandFlags>();
  CLI::App* command = app.add_subcommand("show", kShowDescription);
  command->add_option("ID", flags->id, "An experiment, or a run of a grid")->type_name("")->check(RefuseEmptyId);
  command->add_flag("--json", flags->json, "Print JSON, on one line");
  command->footer(kShowFooter);
  command->callback([flags, &exit_code] {
    const absl::Status done = Show(*flags);
    exit_code = done.ok() ? 0 : ReportError("show", done);
  });
}

}  // namespace muster
