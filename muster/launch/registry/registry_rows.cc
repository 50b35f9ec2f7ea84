#include "muster/launch/registry/registry_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/utf8.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/hosts/command_json.h"
#include "muster/launch/registry/index_schema.h"

namespace muster {
namespace {

absl::Status RegistryRowError(const std::string& what, std::string_view text) {
  return absl::DataLossError(absl::StrCat("the registry holds ", what, " that muster never writes: ", Quoted(text)));
}

absl::StatusOr<RunState> StateOfColumn(const std::string& text) {
  absl::StatusOr<RunState> state = ParseRunState(text);
  return state.ok() ? state : RegistryRowError("a state", text);
}

absl::StatusOr<nlohmann::json> ObjectOfColumn(const std::string& what, std::string_view text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return RegistryRowError(what, text);
  return object;
}

nlohmann::json JsonOf(const SlurmSetting& slurm) {
  nlohmann::json options = nlohmann::json::object();
  for (const auto& [name, value] : slurm.options) options[name] = value.has_value() ? nlohmann::json(*value) : nullptr;
  return {{"options", std::move(options)}, {"extra", slurm.extra}, {"max_requeues", slurm.max_requeues}};
}

// Throws as nlohmann::json does.
SlurmSetting SlurmSettingOf(const nlohmann::json& object) {
  SlurmSetting slurm{.extra = object.at("extra").get<std::vector<std::string>>(),
                     .max_requeues = object.at("max_requeues").get<int>()};
  for (const auto& [name, value] : object.at("options").items())
    slurm.options[name] = value.is_null() ? std::nullopt : std::optional<std::string>(value.get<std::string>());
  return slurm;
}

nlohmann::json JsonOf(const RaySetting& ray) {
  return {{"nodes", ray.nodes},
          {"address", ray.address},
          {"python", ray.python},
          {"autoscaler", ray.autoscaler},
          {"resources", ray.resources}};
}

// Throws as nlohmann::json does.
RaySetting RaySettingOf(const nlohmann::json& object) {
  return {.nodes = object.at("nodes").get<int>(),
          .address = object.at("address").get<std::string>(),
          .python = object.at("python").get<std::string>(),
          .autoscaler = object.at("autoscaler").get<bool>(),
          .resources = object.at("resources").get<std::map<std::string, double>>()};
}

nlohmann::json JsonOf(const SparkSetting& spark) {
  return {{"nodes", spark.nodes},
          {"address", spark.address},
          {"python", spark.python},
          {"start_timeout_seconds", absl::ToDoubleSeconds(spark.start_timeout)},
          {"conf", spark.conf}};
}

// Throws as nlohmann::json does.
SparkSetting SparkSettingOf(const nlohmann::json& object) {
  return {.nodes = object.at("nodes").get<int>(),
          .address = object.at("address").get<std::string>(),
          .python = object.at("python").get<std::string>(),
          .start_timeout = absl::Seconds(object.at("start_timeout_seconds").get<double>()),
          .conf = object.at("conf").get<std::map<std::string, std::string>>()};
}

nlohmann::json JsonOf(const KubernetesSetting& kubernetes) {
  nlohmann::json object = {{"nodes", kubernetes.nodes},
                           {"image", kubernetes.image},
                           {"kubectl", kubernetes.kubectl},
                           {"context", kubernetes.context},
                           {"namespace", kubernetes.name_space},
                           {"muster", kubernetes.muster},
                           {"gpu_resource", kubernetes.gpu_resource},
                           {"service_account", kubernetes.service_account},
                           {"image_pull_secrets", kubernetes.image_pull_secrets},
                           {"node_selector", kubernetes.node_selector},
                           {"annotations", kubernetes.annotations},
                           {"labels", kubernetes.labels},
                           {"tolerations", kubernetes.tolerations},
                           {"claims", kubernetes.claims},
                           {"gang", PodGangText(kubernetes.gang)},
                           {"queue", kubernetes.queue},
                           {"scheduler", kubernetes.scheduler},
                           {"start_timeout_seconds", absl::ToDoubleSeconds(kubernetes.start_timeout)},
                           {"start_pause_seconds", absl::ToDoubleSeconds(kubernetes.start_pause)},
                           {"keep_seconds", absl::ToDoubleSeconds(kubernetes.keep)},
                           {"pod_template", kubernetes.pod_template}};
  if (kubernetes.start_tries.has_value()) object["start_tries"] = *kubernetes.start_tries;
  if (kubernetes.shm_bytes.has_value()) object["shm_bytes"] = *kubernetes.shm_bytes;
  return object;
}

// Throws as nlohmann::json does.
KubernetesSetting KubernetesSettingOf(const nlohmann::json& object) {
  using Texts = std::map<std::string, std::string>;
  KubernetesSetting kubernetes{.nodes = object.at("nodes").get<int>(),
                               .image = object.at("image").get<std::string>(),
                               .kubectl = object.at("kubectl").get<std::string>(),
                               .context = object.at("context").get<std::string>(),
                               .name_space = object.at("namespace").get<std::string>(),
                               .muster = object.at("muster").get<std::string>(),
                               .gpu_resource = object.at("gpu_resource").get<std::string>(),
                               .service_account = object.at("service_account").get<std::string>(),
                               .image_pull_secrets = object.at("image_pull_secrets").get<std::vector<std::string>>(),
                               .node_selector = object.at("node_selector").get<Texts>(),
                               .annotations = object.at("annotations").get<Texts>(),
                               .labels = object.at("labels").get<Texts>(),
                               .tolerations = object.at("tolerations").get<std::string>(),
                               .claims = object.at("claims").get<std::vector<std::pair<std::string, std::string>>>(),
                               .queue = object.at("queue").get<std::string>(),
                               .scheduler = object.at("scheduler").get<std::string>(),
                               .start_timeout = absl::Seconds(object.at("start_timeout_seconds").get<double>()),
                               .keep = absl::Seconds(object.at("keep_seconds").get<double>()),
                               .pod_template = object.at("pod_template").get<std::string>()};
  // One of a later muster is as good as none.
  static_cast<void>(TakeKubernetesSetting(kubernetes, "gang", object.at("gang").get<std::string>()));
  if (object.contains("start_tries")) kubernetes.start_tries = object.at("start_tries").get<int>();
  if (object.contains("start_pause_seconds"))
    kubernetes.start_pause = absl::Seconds(object.at("start_pause_seconds").get<double>());
  if (object.contains("shm_bytes")) kubernetes.shm_bytes = object.at("shm_bytes").get<int64_t>();
  return kubernetes;
}

nlohmann::json JsonOf(const HostSetting& setting) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : setting.hosts) {
    nlohmann::json one = {{"name", host.name}, {"address", host.address}};
    if (host.slots.has_value()) one["slots"] = *host.slots;
    if (host.gpus.has_value()) one["gpus"] = *host.gpus;
    hosts.push_back(std::move(one));
  }
  nlohmann::json object = {{"hosts", std::move(hosts)},
                           {"placement", setting.placement},
                           {"grace_seconds", absl::ToDoubleSeconds(setting.grace)},
                           {"ssh_config", setting.ssh_config}};
  if (setting.slurm.has_value()) object["slurm"] = JsonOf(*setting.slurm);
  if (setting.ports.has_value()) object["ports"] = {setting.ports->first, setting.ports->count};
  if (setting.ray.has_value()) object["ray"] = JsonOf(*setting.ray);
  if (setting.command.has_value()) object["command"] = JsonOfCommands(*setting.command);
  if (setting.kubernetes.has_value()) object["kubernetes"] = JsonOf(*setting.kubernetes);
  if (setting.spark.has_value()) object["spark"] = JsonOf(*setting.spark);
  return object;
}

std::optional<int> NumberOr(const nlohmann::json& object, const char* key) {
  return object.contains(key) ? std::optional<int>(object.at(key).get<int>()) : std::nullopt;
}

// Throws as nlohmann::json does.
HostSetting HostSettingOf(const nlohmann::json& object) {
  HostSetting setting;
  for (const nlohmann::json& host : object.at("hosts"))
    setting.hosts.push_back({.name = host.at("name").get<std::string>(),
                             .slots = NumberOr(host, "slots"),
                             .gpus = NumberOr(host, "gpus"),
                             .address = host.at("address").get<std::string>()});
  setting.placement = object.at("placement").get<std::map<std::string, std::vector<std::string>>>();
  setting.grace = absl::Seconds(object.at("grace_seconds").get<double>());
  setting.ssh_config = object.at("ssh_config").get<std::string>();
  if (object.contains("slurm")) setting.slurm = SlurmSettingOf(object.at("slurm"));
  if (object.contains("ports"))
    setting.ports = {.first = object.at("ports").at(0).get<uint16_t>(),
                     .count = object.at("ports").at(1).get<uint16_t>()};
  if (object.contains("ray")) setting.ray = RaySettingOf(object.at("ray"));
  if (object.contains("command")) setting.command = CommandsOfJson(object.at("command"));
  if (object.contains("kubernetes")) setting.kubernetes = KubernetesSettingOf(object.at("kubernetes"));
  if (object.contains("spark")) setting.spark = SparkSettingOf(object.at("spark"));
  return setting;
}

}  // namespace

absl::StatusOr<std::string> ParametersText(const ParameterValues& parameters) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : parameters) {
    if (!IsUtf8(name) || !IsUtf8(value))
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", Quoted(name), " with value ", Quoted(value), " isn't text; accepted: UTF-8"));
    object[name] = value;
  }
  return object.dump();
}

absl::StatusOr<ParameterValues> ParseParametersText(std::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json object, ObjectOfColumn("parameters", text));
  ParameterValues parameters;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) return RegistryRowError("parameters", text);
    parameters.emplace(name, value.get<std::string>());
  }
  return parameters;
}

absl::Status CheckOptions(const SubmitOptions& options) {
  if (!options.hosts.is_elsewhere()) return absl::OkStatus();
  const nlohmann::json values = JsonOf(options.hosts).flatten();
  // The first value that isn't text is named.
  for (const auto& [key, value] : values.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (!IsUtf8(key) || !IsUtf8(text))
      return absl::InvalidArgumentError(absl::StrCat("where the tasks run: ", Quoted(key), " is ",
                                                     value.is_string() ? Quoted(text) : "there",
                                                     ", which isn't text; accepted: UTF-8"));
  }
  return absl::OkStatus();
}

std::string OptionsText(const SubmitOptions& options) {
  nlohmann::json object = {
      {"no_gpus", options.no_gpus}, {"no_venv", options.no_venv}, {"stop_grace_seconds", options.stop_grace_seconds}};
  if (options.hosts.is_elsewhere() || options.hosts.ports.has_value()) object["hosts"] = JsonOf(options.hosts);
  return object.dump();
}

absl::StatusOr<SubmitOptions> ParseOptionsText(std::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json object, ObjectOfColumn("options", text));
  SubmitOptions options;
  try {
    options.no_gpus = object.value("no_gpus", options.no_gpus);
    options.no_venv = object.value("no_venv", options.no_venv);
    options.stop_grace_seconds = object.value("stop_grace_seconds", options.stop_grace_seconds);
    if (object.contains("hosts")) options.hosts = HostSettingOf(object["hosts"]);
  } catch (const nlohmann::json::exception&) {
    return RegistryRowError("options", text);
  }
  return options;
}

std::string EnvironmentBytes(const std::vector<std::string>& environment) {
  std::string bytes;
  for (const std::string& variable : environment) {
    bytes += variable;
    bytes += '\0';
  }
  return bytes;
}

std::vector<std::string> ParseEnvironmentBytes(std::string_view bytes) {
  std::vector<std::string> environment = absl::StrSplit(AbslView(bytes), '\0');
  environment.pop_back();  // the piece after the last zero byte
  return environment;
}

absl::StatusOr<RunRecord> RunOfRow(const SqliteStatement& row) {
  RunRecord run;
  run.id = {row.Int(0), static_cast<int>(row.Int(1))};
  run.project = row.Text(2);
  ASSIGN_OR_RETURN(run.state, StateOfColumn(row.Text(3)));
  run.reason = row.Text(4);
  ASSIGN_OR_RETURN(run.parameters, ParseParametersText(row.Text(5)));
  run.output_dir = row.Text(6);
  run.tree = row.Text(7);
  run.folder = row.Text(8);
  run.attempt = static_cast<int>(row.Int(9));
  run.runs = static_cast<int>(row.Int(10));
  run.exit_code = static_cast<int>(row.Int(11));
  run.supervisor = static_cast<pid_t>(row.Int(12));
  run.created = absl::FromUnixMicros(row.Int(13));
  run.ended = row.IsNull(14) ? absl::InfinitePast() : absl::FromUnixMicros(row.Int(14));
  run.run_id = row.Text(15);
  run.machine = row.Text(16);
  return run;
}

absl::StatusOr<TaskRecord> TaskOfRow(const SqliteStatement& row) {
  TaskRecord task;
  task.task = {row.Text(0), static_cast<int>(row.Int(1))};
  ASSIGN_OR_RETURN(task.state, StateOfColumn(row.Text(2)));
  task.since = absl::FromUnixMicros(row.Int(3));
  task.pid = static_cast<pid_t>(row.Int(4));
  task.cgroup = row.Text(5);
  task.status_address = row.Text(6);
  task.gpus = row.Text(7);
  task.mem_limit = row.Int(8);
  task.restarts = static_cast<int>(row.Int(9));
  if (!row.IsNull(10)) task.exit = ExitStatus{static_cast<int>(row.Int(10)), static_cast<int>(row.Int(11))};
  task.reason = row.Text(12);
  task.host = row.Text(13);
  return task;
}

absl::StatusOr<RunRecord> SelectRun(SqliteDatabase& database, const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database.Prepare(absl::StrCat("SELECT ", kRunColumns,
                                                 " FROM runs r JOIN experiments e ON e.number = r.number"
                                                 " WHERE r.number = ? AND r.run = ?")));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(id.number).BindInt(id.run).Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no run ", id.ToString()));
  return RunOfRow(select);
}

absl::StatusOr<TaskRecord> SelectTask(SqliteDatabase& database, const ExperimentId& id, const TaskId& task) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database.Prepare(absl::StrCat("SELECT ", kTaskColumns,
                                                 " FROM tasks WHERE number = ? AND run = ? AND job = ? AND task = ?")));
  select.BindInt(id.number).BindInt(id.run).BindText(task.job).BindInt(task.index);
  ASSIGN_OR_RETURN(const bool row, select.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no task ", FullName(id, task)));
  return TaskOfRow(select);
}

absl::StatusOr<std::vector<TaskRecord>> SelectTasks(SqliteDatabase& database, const ExperimentId& id) {
  ASSIGN_OR_RETURN(
      SqliteStatement select,
      database.Prepare(absl::StrCat("SELECT ", kTaskColumns, " FROM tasks WHERE number = ? AND run = ? ORDER BY id")));
  select.BindInt(id.number).BindInt(id.run);
  std::vector<TaskRecord> tasks;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return tasks;
    ASSIGN_OR_RETURN(TaskRecord task, TaskOfRow(select));
    tasks.push_back(std::move(task));
  }
}

absl::StatusOr<int64_t> CountOpenRuns(SqliteDatabase& database, int64_t number) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database.Prepare("SELECT count(*) FROM runs WHERE number = ? AND ended_us IS NULL"));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(number).Step());
  return row ? select.Int(0) : 0;
}

void BindSpecification(SqliteStatement& statement, const NewExperiment& experiment, int64_t runs) {
  statement.BindText(experiment.project)
      .BindText(experiment.folder)
      .BindText(experiment.tree)
      .BindInt(runs)
      .BindText(experiment.file_name)
      .BindText(OptionsText(experiment.options))
      .BindBytes(EnvironmentBytes(experiment.environment))
      .BindText(experiment.file_text);
}

absl::Status UpdateRun(SqliteDatabase& database, const RunRecord& run) {
  ASSIGN_OR_RETURN(SqliteStatement update,
                   database.Prepare("UPDATE runs SET state = ?, reason = ?, output_dir = ?, exit_code = ?,"
                                    " supervisor = ?, machine = ?, run_id = ?, ended_us = ?"
                                    " WHERE number = ? AND run = ? AND attempt = ?"));
  update.BindText(Name(run.state)).BindText(run.reason).BindText(run.output_dir).BindInt(run.exit_code);
  update.BindInt(run.supervisor).BindText(run.machine).BindText(run.run_id);
  if (run.ended == absl::InfinitePast()) {
    update.BindNull();
  } else {
    update.BindInt(absl::ToUnixMicros(run.ended));
  }
  return update.BindInt(run.id.number).BindInt(run.id.run).BindInt(run.attempt).Run();
}

absl::Status UpsertTask(SqliteDatabase& database, const ExperimentId& id, const TaskRecord& task) {
  ASSIGN_OR_RETURN(
      SqliteStatement upsert,
      database.Prepare(absl::StrCat("INSERT INTO tasks (number, run, ", kTaskColumns,
                                    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                                    " ON CONFLICT (number, run, job, task) DO UPDATE SET state = excluded.state,"
                                    " since_us = excluded.since_us, pid = excluded.pid, cgroup = excluded.cgroup,"
                                    " status_address = excluded.status_address, gpus = excluded.gpus,"
                                    " mem_limit = excluded.mem_limit, restarts = excluded.restarts,"
                                    " exit_code = excluded.exit_code, exit_signal = excluded.exit_signal,"
                                    " reason = excluded.reason, host = excluded.host")));
  upsert.BindInt(id.number).BindInt(id.run).BindText(task.task.job).BindInt(task.task.index);
  upsert.BindText(Name(task.state)).BindInt(absl::ToUnixMicros(task.since)).BindInt(task.pid).BindText(task.cgroup);
  upsert.BindText(task.status_address).BindText(task.gpus).BindInt(task.mem_limit).BindInt(task.restarts);
  if (task.exit.has_value()) {
    upsert.BindInt(task.exit->code).BindInt(task.exit->signal);
  } else {
    upsert.BindNull().BindNull();
  }
  return upsert.BindText(task.reason).BindText(task.host).Run();
}

absl::Status ApplyAskedRun(SqliteDatabase& database, int64_t number, const AskedRun& asked) {
  const ExperimentId id{.number = number, .run = asked.run};
  ASSIGN_OR_RETURN(const std::string parameters, ParametersText(asked.parameters));
  ASSIGN_OR_RETURN(SqliteStatement known, database.Prepare("SELECT attempt FROM runs WHERE number = ? AND run = ?"));
  ASSIGN_OR_RETURN(const bool row, known.BindInt(number).BindInt(asked.run).Step());
  if (row && known.Int(0) >= asked.attempt) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      SqliteStatement upsert,
      database.Prepare(
          "INSERT INTO runs (number, run, state, attempt, supervisor, machine, created_us, exit_code, tree,"
          " output_dir, reason, parameters) VALUES (?, ?, ?, ?, 0, ?, ?, 0, ?, ?, '', ?)"
          " ON CONFLICT (number, run) DO UPDATE SET state = excluded.state, attempt = excluded.attempt,"
          " supervisor = 0, machine = excluded.machine, ended_us = NULL, exit_code = 0,"
          " tree = excluded.tree, reason = '', parameters = excluded.parameters, run_id = '', records = 0"));
  upsert.BindInt(number).BindInt(asked.run).BindText(Name(RunState::kCreated)).BindInt(asked.attempt);
  upsert.BindText(asked.machine).BindInt(absl::ToUnixMicros(asked.created)).BindText(asked.tree);
  RETURN_IF_ERROR(upsert.BindText(asked.output_dir).BindText(parameters).Run());
  RETURN_IF_ERROR(DropTasks(database, id));
  return DropLeases(database, id);
}

absl::Status ApplyChange(SqliteDatabase& database, const ExperimentId& id, const RunChange& change, bool leases) {
  RunRecord run = change.run;
  run.id = id;
  RETURN_IF_ERROR(UpdateRun(database, run));
  if (database.changes() == 0) return absl::OkStatus();
  for (const TaskRecord& task : change.tasks) RETURN_IF_ERROR(UpsertTask(database, id, task));
  RETURN_IF_ERROR(DropLeases(database, id));
  if (!leases || HasEnded(run.state)) return absl::OkStatus();
  ASSIGN_OR_RETURN(SqliteStatement insert,
                   database.Prepare("INSERT OR IGNORE INTO gpu_leases (gpu, number, run) VALUES (?, ?, ?)"));
  for (const int gpu : change.gpus) {
    RETURN_IF_ERROR(insert.BindInt(gpu).BindInt(id.number).BindInt(id.run).Run());
    insert.Reset();
  }
  return absl::OkStatus();
}

absl::Status DropLeases(SqliteDatabase& database, const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement drop, database.Prepare("DELETE FROM gpu_leases WHERE number = ? AND run = ?"));
  return drop.BindInt(id.number).BindInt(id.run).Run();
}

absl::Status DropTasks(SqliteDatabase& database, const ExperimentId& id) {
  ASSIGN_OR_RETURN(SqliteStatement drop, database.Prepare("DELETE FROM tasks WHERE number = ? AND run = ?"));
  return drop.BindInt(id.number).BindInt(id.run).Run();
}

absl::Status DropExperiment(SqliteDatabase& database, int64_t number) {
  for (const char* sql : {"DELETE FROM experiments WHERE number = ?", "DELETE FROM runs WHERE number = ?",
                          "DELETE FROM tasks WHERE number = ?", "DELETE FROM gpu_leases WHERE number = ?"}) {
    ASSIGN_OR_RETURN(SqliteStatement drop, database.Prepare(sql));
    RETURN_IF_ERROR(drop.BindInt(number).Run());
  }
  return absl::OkStatus();
}

absl::Status DropRunsAbove(SqliteDatabase& database, int64_t number, int64_t runs) {
  for (const char* sql :
       {"DELETE FROM runs WHERE number = ? AND run > ?", "DELETE FROM tasks WHERE number = ? AND run > ?"}) {
    ASSIGN_OR_RETURN(SqliteStatement surplus, database.Prepare(sql));
    RETURN_IF_ERROR(surplus.BindInt(number).BindInt(runs).Run());
  }
  return absl::OkStatus();
}

}  // namespace muster
