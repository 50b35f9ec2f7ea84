#include "muster/launch/registry/registry_rows.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"

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

nlohmann::json JsonOf(const HostSetting& setting) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const Host& host : setting.hosts) {
    nlohmann::json one = {{"name", host.name}, {"address", host.address}};
    if (host.slots.has_value()) one["slots"] = *host.slots;
    if (host.gpus.has_value()) one["gpus"] = *host.gpus;
    hosts.push_back(std::move(one));
  }
  return {{"hosts", std::move(hosts)},
          {"placement", setting.placement},
          {"grace_seconds", absl::ToDoubleSeconds(setting.grace)},
          {"ssh_config", setting.ssh_config}};
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
  return setting;
}

}  // namespace

absl::StatusOr<std::string> ParametersText(const ParameterValues& parameters) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : parameters) {
    try {
      // Writing finds bytes that aren't text.
      static_cast<void>(nlohmann::json(absl::StrCat(name, "=", value)).dump());
    } catch (const nlohmann::json::type_error&) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", Quoted(name), " with value ", Quoted(value), " isn't text; accepted: UTF-8"));
    }
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

std::string OptionsText(const SubmitOptions& options) {
  nlohmann::json object = {
      {"no_gpus", options.no_gpus}, {"no_venv", options.no_venv}, {"stop_grace_seconds", options.stop_grace_seconds}};
  if (!options.hosts.hosts.empty()) object["hosts"] = JsonOf(options.hosts);
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

}  // namespace muster
