#include "muster/launch/registry/experiment_json.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/registry/registry_rows.h"

namespace muster {
namespace {

constexpr int kFileFormat = 1;
constexpr char kHexKey[] = "hex";

bool IsUtf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

// A text of any bytes.
nlohmann::json JsonOfBytes(const std::string& bytes) {
  if (IsUtf8(bytes)) return bytes;
  return {{kHexKey, absl::BytesToHexString(bytes)}};
}

std::string BytesOfJson(const nlohmann::json& value) {
  return value.is_object() ? absl::HexStringToBytes(value.at(kHexKey).get<std::string>()) : value.get<std::string>();
}

nlohmann::json JsonOfTime(absl::Time time) {
  return time == absl::InfinitePast() ? nlohmann::json() : nlohmann::json(absl::ToUnixMicros(time));
}

absl::Time TimeOfJson(const nlohmann::json& value) {
  return value.is_null() ? absl::InfinitePast() : absl::FromUnixMicros(value.get<int64_t>());
}

// Throws what isn't a state's name, as nlohmann::json throws what isn't text.
RunState StateOfJson(const nlohmann::json& value) {
  const auto state = ParseRunState(value.get<std::string>());
  if (!state.ok()) throw std::invalid_argument("not a state");
  return *state;
}

nlohmann::json JsonOfTask(const TaskRecord& task) {
  nlohmann::json object = {{"job", task.task.job},
                           {"index", task.task.index},
                           {"state", Name(task.state)},
                           {"since_us", absl::ToUnixMicros(task.since)},
                           {"pid", task.pid},
                           {"host", JsonOfBytes(task.host)},
                           {"cgroup", JsonOfBytes(task.cgroup)},
                           {"status_address", JsonOfBytes(task.status_address)},
                           {"gpus", JsonOfBytes(task.gpus)},
                           {"mem_limit", task.mem_limit},
                           {"restarts", task.restarts},
                           {"reason", JsonOfBytes(task.reason)}};
  if (task.exit.has_value()) object["exit"] = {{"code", task.exit->code}, {"signal", task.exit->signal}};
  return object;
}

TaskRecord TaskOfJson(const nlohmann::json& object) {
  TaskRecord task;
  task.task = {object.at("job").get<std::string>(), object.at("index").get<int>()};
  task.state = StateOfJson(object.at("state"));
  task.since = absl::FromUnixMicros(object.at("since_us").get<int64_t>());
  task.pid = object.at("pid").get<pid_t>();
  task.host = BytesOfJson(object.at("host"));
  task.cgroup = BytesOfJson(object.at("cgroup"));
  task.status_address = BytesOfJson(object.at("status_address"));
  task.gpus = BytesOfJson(object.at("gpus"));
  task.mem_limit = object.at("mem_limit").get<int64_t>();
  task.restarts = object.at("restarts").get<int>();
  task.reason = BytesOfJson(object.at("reason"));
  if (object.contains("exit"))
    task.exit = ExitStatus{object["exit"].at("code").get<int>(), object["exit"].at("signal").get<int>()};
  return task;
}

nlohmann::json JsonOfChange(const RunChange& change) {
  const RunRecord& run = change.run;
  nlohmann::json tasks = nlohmann::json::array();
  for (const TaskRecord& task : change.tasks) tasks.push_back(JsonOfTask(task));
  return {{"attempt", run.attempt},
          {"state", Name(run.state)},
          {"reason", JsonOfBytes(run.reason)},
          {"output_dir", JsonOfBytes(run.output_dir)},
          {"exit_code", run.exit_code},
          {"supervisor", run.supervisor},
          {"machine", JsonOfBytes(run.machine)},
          {"run_id", run.run_id},
          {"ended_us", JsonOfTime(run.ended)},
          {"gpus", change.gpus},
          {"tasks", std::move(tasks)}};
}

nlohmann::json JsonOfAsked(const AskedRun& asked) {
  return {{"run", asked.run},
          {"attempt", asked.attempt},
          {"created_us", absl::ToUnixMicros(asked.created)},
          {"tree", asked.tree},
          {"parameters", asked.parameters},
          {"output_dir", JsonOfBytes(asked.output_dir)},
          {"machine", JsonOfBytes(asked.machine)}};
}

AskedRun AskedOfJson(const nlohmann::json& object) {
  return {.run = object.at("run").get<int>(),
          .attempt = object.at("attempt").get<int>(),
          .created = absl::FromUnixMicros(object.at("created_us").get<int64_t>()),
          .tree = object.at("tree").get<std::string>(),
          .parameters = object.at("parameters").get<ParameterValues>(),
          .output_dir = BytesOfJson(object.at("output_dir")),
          .machine = BytesOfJson(object.at("machine"))};
}

absl::Status UnreadableJson(const std::string& what, std::string_view text) {
  constexpr size_t kShown = 200;
  return absl::DataLossError(absl::StrCat(what, " that muster never writes: ", Quoted(text.substr(0, kShown))));
}

}  // namespace

std::string ExperimentText(const ExperimentFileText& file) {
  const NewExperiment& experiment = file.experiment;
  nlohmann::json environment = nlohmann::json::array();
  for (const std::string& variable : experiment.environment) environment.push_back(JsonOfBytes(variable));
  nlohmann::json runs = nlohmann::json::array();
  for (const AskedRun& asked : file.runs) runs.push_back(JsonOfAsked(asked));
  const nlohmann::json object = {{"format", kFileFormat},
                                 {"number", file.number},
                                 {"project", JsonOfBytes(experiment.project)},
                                 {"folder", JsonOfBytes(experiment.folder)},
                                 {"file_name", JsonOfBytes(experiment.file_name)},
                                 {"file_text", JsonOfBytes(experiment.file_text)},
                                 {"tree", experiment.tree},
                                 {"grid", experiment.grid},
                                 {"options", nlohmann::json::parse(OptionsText(experiment.options))},
                                 {"environment", std::move(environment)},
                                 {"runs", std::move(runs)}};
  return object.dump(1) + "\n";
}

absl::StatusOr<ExperimentFileText> ParseExperimentText(std::string_view text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ExperimentFileText file;
  try {
    if (object.at("format").get<int>() > kFileFormat)
      return absl::FailedPreconditionError(absl::StrCat("it was made by a newer muster (format ",
                                                        object.at("format").get<int>(), "; this one knows ",
                                                        kFileFormat, ")"));
    file.number = object.at("number").get<int64_t>();
    file.experiment.project = BytesOfJson(object.at("project"));
    file.experiment.folder = BytesOfJson(object.at("folder"));
    file.experiment.file_name = BytesOfJson(object.at("file_name"));
    file.experiment.file_text = BytesOfJson(object.at("file_text"));
    file.experiment.tree = object.at("tree").get<std::string>();
    file.experiment.grid = object.at("grid").get<bool>();
    ASSIGN_OR_RETURN(file.experiment.options, ParseOptionsText(object.at("options").dump()));
    for (const nlohmann::json& variable : object.at("environment"))
      file.experiment.environment.push_back(BytesOfJson(variable));
    for (const nlohmann::json& asked : object.at("runs")) file.runs.push_back(AskedOfJson(asked));
  } catch (const std::exception&) {
    return UnreadableJson("an experiment", text);
  }
  if (file.runs.empty() || file.runs.front().run != 0) return UnreadableJson("an experiment without runs", text);
  return file;
}

std::string RecordText(const RunChange& change) { return JsonOfChange(change).dump(); }

absl::StatusOr<RunChange> ParseRecordText(std::string_view text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  RunChange change;
  try {
    RunRecord& run = change.run;
    run.attempt = object.at("attempt").get<int>();
    run.state = StateOfJson(object.at("state"));
    run.reason = BytesOfJson(object.at("reason"));
    run.output_dir = BytesOfJson(object.at("output_dir"));
    run.exit_code = object.at("exit_code").get<int>();
    run.supervisor = object.at("supervisor").get<pid_t>();
    run.machine = BytesOfJson(object.at("machine"));
    run.run_id = object.at("run_id").get<std::string>();
    run.ended = TimeOfJson(object.at("ended_us"));
    change.gpus = object.at("gpus").get<std::vector<int>>();
    for (const nlohmann::json& task : object.at("tasks")) change.tasks.push_back(TaskOfJson(task));
  } catch (const std::exception&) {
    return UnreadableJson("a record", text);
  }
  return change;
}

std::string StateText(const RunChange& state, absl::Time renewed) {
  nlohmann::json object = JsonOfChange(state);
  object["format"] = kFileFormat;
  object["id"] = state.run.id.ToString();
  object["project"] = JsonOfBytes(state.run.project);
  object["renewed_us"] = absl::ToUnixMicros(renewed);
  return object.dump(1) + "\n";
}

}  // namespace muster
